/** The devices in the answer of `GET /v2/fleet`. */
export interface FleetView {
  readonly workers: readonly {
    readonly name: string;
    readonly device?: {
      readonly provider: string;
      readonly gpu?: number;
      readonly name?: string;
      readonly memory?: { readonly total_bytes: number; readonly used_bytes: number };
    };
    readonly models: readonly { readonly name: string; readonly provider?: string; readonly gpu?: number }[];
    readonly failed: readonly { readonly name: string; readonly reason: string }[];
  }[];
  readonly models: readonly { readonly name: string; readonly digest: string; readonly warnings?: string[] }[];
}

export async function viewFleet(url: string): Promise<FleetView> {
  return (await (await fetch(`${url}/v2/fleet`)).json()) as FleetView;
}
