import { Component, type ReactNode } from "react";

/** Shows the error of a refused query in its children, which `@throwOnFieldError` throws. */
export class Failed extends Component<{ children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {};
  static getDerivedStateFromError = (error: Error) => ({ error });
  override render() {
    return this.state.error ? <p className="wrong">{this.state.error.message}</p> : this.props.children;
  }
}
