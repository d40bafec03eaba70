// Makes a capability private or public.
import { graphql } from "../generated";

export const visibilityDocument = graphql(`
  mutation SwitchCapability($input: SetCapabilityVisibilityInput!) {
    setCapabilityVisibility(input: $input) {
      capability {
        id
        private
      }
    }
  }
`);
