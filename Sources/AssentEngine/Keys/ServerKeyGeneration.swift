import AssentCore
import AssentJOSE
import Foundation

/// Makes the server's signing keys.
enum ServerKeyGeneration {
    /// What RS256 clients expect, and as much as tokens of an hour need: 112 bits of strength (NIST SP 800-57).
    private static let rsaBits = 2048

    /// A new key. One for RSA takes tenths of a second of a core, and on an unlucky day seconds: it is made on a thread
    /// of its own, since on Swift's threads it would hold up every other request.
    static func key(_ algorithm: SignatureAlgorithm) async throws -> SoftwareSigningKey {
        guard algorithm == .rs256 else { return try SoftwareSigningKey.generate(algorithm) }
        return try await withCheckedThrowingContinuation { continuation in
            let thread = Thread {
                PasswordWorkers.lowerPriority()
                continuation.resume(with: Result { try SoftwareSigningKey.generate(algorithm, rsaBits: rsaBits) })
            }
            thread.name = "RSA key"
            thread.start()
        }
    }
}
