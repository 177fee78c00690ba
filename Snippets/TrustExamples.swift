// The examples in the doc comments about trust files: Scripts/check_examples.py compares what stands between the marks.
import Assent
import Foundation

func trusting(_ bundled: URL, server: String, client: Assent.Client, vault: Assent.Vault) throws -> Assent {
    // snippet: trust begin
    let shipped = try TrustFile(shipped: String(contentsOf: bundled, encoding: .utf8))
    let assent = try Assent(.init(server: server, client: client, trust: shipped, vault: vault))
    // snippet: trust end
    return assent
}

func settings(
    _ file: TrustFile, server: String, client: Assent.Client, vault: Assent.Vault
) -> Assent.Configuration {
    // snippet: trust-configuration begin
    let configuration = Assent.Configuration(server: server, client: client, trust: file, vault: vault)
    // snippet: trust-configuration end
    return configuration
}

func updated(_ assent: Assent) async -> Int? {
    // snippet: trust-update begin
    let version = await assent.updateTrust()
    // snippet: trust-update end
    return version
}

func pinLength(_ assent: Assent) async throws -> Int? {
    // snippet: pin-rules begin
    let rules = try await assent.pinRules()
    let digits = rules?.minLength
    // snippet: pin-rules end
    return digits
}
