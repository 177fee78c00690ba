import Assent
import AssentConfiguration
import AssentCore

extension ClientFile {
    /// An origin of `payloadEncryption` in the file, to which everything is sent sealed.
    struct SealedOrigin: Sendable, Equatable {
        var origin: String

        /// The server's static public keys, as `assent admin payload-keys list` has them under `x`.
        var keys: [String]

        /// Whether a registered installation seals in its own name: `role: device`.
        var isDevice = false

        /// The same for the SDK.
        ///
        /// - Throws: `WireError` for what is not a key.
        func sealing() throws(WireError) -> Assent.PayloadEncryption {
            var read: [Assent.PayloadEncryption.Key] = []
            for key in keys { read.append(try Assent.PayloadEncryption.Key(key)) }
            return Assent.PayloadEncryption(keys: read, role: isDevice ? .device : .app)
        }

        /// The line of the file.
        fileprivate var yaml: String {
            let names = keys.map(ClientFile.quoted).joined(separator: ", ")
            return "\(ClientFile.quoted(origin)): {keys: [\(names)]\(isDevice ? ", role: device" : "")}"
        }
    }

    /// The most keys of an origin.
    private static let keyLimit = 8

    /// The origins of `payloadEncryption`.
    static func sealedOrigins(_ reader: SettingsReader<Void>) throws -> [SealedOrigin] {
        let registers = reader.has("registration")
        guard let outer = reader.optionalMapping("payloadEncryption") else { return [] }
        return try outer.keys.map { address in
            guard let origin = try? Origin(headerValue: address), origin.isSecure else {
                throw outer.issue(address, "is not an https origin, for example https://api.bank.example")
            }
            let own = outer.mapping(address)
            let role = own.string("role", default: "app")
            guard ["app", "device"].contains(role) else { throw own.issue("role", "must be app or device") }
            guard role == "app" || registers else {
                throw own.issue("role", "device belongs to an installation that registers: write registration, or app")
            }
            let sealed = SealedOrigin(
                origin: origin.description, keys: own.strings("keys"), isDevice: role == "device")
            own.finish()
            guard (1...keyLimit).contains(sealed.keys.count), Set(sealed.keys).count == sealed.keys.count else {
                throw own.issue("keys", "names 1 to \(keyLimit) different keys, better two than one")
            }
            do {
                _ = try sealed.sealing()
            } catch {
                throw own.issue("keys", "has one that is not the x of 'assent admin payload-keys list'")
            }
            return sealed
        }
    }

    /// The lines of the file.
    var sealedLines: [String] {
        guard !payloadEncryption.isEmpty else { return [] }
        return ["# Everything to these origins is sealed inside of TLS.", "payloadEncryption:"]
            + payloadEncryption.map { "  \($0.yaml)" }
    }
}
