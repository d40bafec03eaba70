// Returns milliseconds multiplied by CADASTRE_TEST_PATIENCE, as the package
// internal/patience does.
"use strict";
module.exports = (milliseconds) => milliseconds * Number(process.env.CADASTRE_TEST_PATIENCE || 1);
