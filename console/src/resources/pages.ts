export { NewResourcePage } from "./form";
export { ResourcePage } from "./resource";
export { ResourceTable } from "./table";
