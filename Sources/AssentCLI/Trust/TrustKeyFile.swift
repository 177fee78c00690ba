import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation

/// A key that signs trust files, as a file: the private half in PEM (PKCS#8), the public half as a JWK.
enum TrustKeyFile {
    private static let head = "-----BEGIN PRIVATE KEY-----"
    private static let foot = "-----END PRIVATE KEY-----"

    /// Makes `<name>.pem`, which only this user can read, and `<name>.jwk`.
    static func make(_ name: String) throws -> ProtocolKey {
        let key = try SoftwareSigningKey.generate(.es256)
        let shown = try ProtocolKey(key)
        let base64 = Data(key.privateKey.revealBytes()).base64EncodedString(
            options: [.lineLength64Characters, .endLineWithLineFeed])
        try TrustText.write("\(head)\n\(base64)\n\(foot)\n", to: "\(name).pem", mode: 0o600)
        do {
            try TrustText.write(shown.json.serialized() + "\n", to: "\(name).jwk", mode: 0o644)
        } catch {
            // Beside another public half it would be a key that nothing names, and in the way of the next attempt.
            try? FileManager.default.removeItem(atPath: "\(name).pem")
            throw error
        }
        return shown
    }

    /// The key in a PEM file that nobody else may read.
    static func read(_ path: String) throws -> SoftwareSigningKey {
        let bytes = try TrustText.bytes(path, isPrivate: true)
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        guard lines.count > 2, lines.first == head[...], lines.last == foot[...],
            let der = Data(base64Encoded: lines.dropFirst().dropLast().joined()),
            let key = try? SoftwareSigningKey(algorithm: .es256, privateKey: Secret(bytes: der))
        else {
            throw CommandFailure(
                "\(path) is not a key that 'assent config key' has made: a private key on P-256 in PEM.",
                status: .configuration)
        }
        return key
    }

    /// The public key in a JWK file.
    static func publicKey(_ path: String) throws -> ProtocolKey {
        guard let json = try? JSONValue.parse(try TrustText.bytes(path)), let key = try? ProtocolKey(json) else {
            throw CommandFailure(
                "\(path) is not a public key on P-256 with exactly crv, kty, x and y.", status: .configuration)
        }
        return key
    }
}
