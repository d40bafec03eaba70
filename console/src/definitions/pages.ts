export { Catalogue } from "./catalogue";
export { ImportPage } from "./import";
export { NamespacePage, NewNamespacePage } from "./namespace";
export { NewPropertyPage, PropertyPage } from "./property";
