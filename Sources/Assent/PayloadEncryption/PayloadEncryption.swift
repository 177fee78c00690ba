public import AssentCore
import AssentPayload
public import Foundation

extension Assent {
    /// Payload encryption of one origin (docs/payload-encryption.md): all calls to it are sealed between this app and
    /// the server's listener, inside of TLS, so that a proxy that ends TLS on the way can neither read nor change it.
    public struct PayloadEncryption: Sendable {
        /// The static public keys of the server. They are tried in this order.
        public var keys: [Key]

        /// Whose sessions they are.
        public var role: Role

        /// What the app is to the server; `nil` stands for ``Assent/Client/id``.
        public var app: String?

        /// The app's version; `nil` stands for ``Assent/Client/version``, or `0` without one.
        public var version: String?

        /// The platform.
        public var platform = HostPlatform.name

        /// With these keys; the rest has the usual value.
        public init(keys: [Key], role: Role = .app) {
            self.keys = keys
            self.role = role
        }

        /// Whose a session is.
        public enum Role: Hashable, Sendable {
            /// Nobody's: any installation of the app.
            case app
            /// The installation's, once it is registered: it proves its key. Until then as ``app``. It needs
            /// ``Configuration/registration``.
            case device
        }

        /// A static public key of a server.
        public struct Key: Hashable, Sendable {
            /// From when on it is not used.
            public let notAfter: Date

            /// The key's name, its thumbprint (RFC 7638).
            public var kid: String { key.kid }

            let key: PayloadKey

            /// A key by its 32 bytes (X25519, RFC 7748) as base64url without padding.
            ///
            /// - Parameters:
            ///   - text: the public key.
            ///   - notAfter: from when on it is not used.
            /// - Throws: `WireError` with code `malformed`.
            public init(_ text: String, notAfter: Date = .distantFuture) throws(WireError) {
                guard let bytes = Base64URL.decode(text), let key = try? PayloadKey(bytes) else {
                    throw WireError(.malformed, "a key of payload encryption is 32 bytes in base64url")
                }
                (self.key, self.notAfter) = (key, notAfter)
            }
        }
    }
}
