import AssentConfiguration
import AssentCore
import Foundation

/// Reads the section `notify`: the operator's service that brings users what concerns their devices.
struct WebhookLoader {
    let reader: SettingsReader<Void>
    let paths: ConfigurationPaths
    let outbound: OutboundSettings

    func settings() throws -> WebhookSettings {
        guard let url = reader.optionalString("url"), OutboundCalls.mayCall(url, plainly: outbound.allowsPlainLoopback),
            let host = try? Origin(url).host
        else {
            throw reader.issue(
                "url",
                "must be an https URL without user information and fragment, for example "
                    + "https://push.bank.example/assent. Only development: true allows http, to this machine")
        }
        guard !host.isLoopback || outbound.privateHosts.contains(host) else {
            throw reader.issue("url", "leads to this machine: name \(host) in outbound.privateHosts as well")
        }
        let key = try secret()
        reader.finish()
        return WebhookSettings(url: url, key: key)
    }

    /// The key in the form that Standard Webhooks gives to secrets.
    private func secret() throws -> Secret {
        guard let file = reader.optionalString("secretFile") else {
            throw reader.issue(
                "secretFile", "is missing: name a file (mode 0600) with the secret that messages are signed with")
        }
        let text = try PrivateFile.text(paths.resolve(file)).trimmingCharacters(in: .whitespacesAndNewlines)
        let prefix = "whsec_"
        guard text.hasPrefix(prefix), let bytes = Data(base64Encoded: String(text.dropFirst(prefix.count))),
            (24...64).contains(bytes.count)
        else {
            throw reader.issue(
                "secretFile",
                "must hold \(prefix) and the base 64 of 24 to 64 random bytes, as 'openssl rand -base64 32' makes them")
        }
        return Secret(bytes: bytes)
    }
}
