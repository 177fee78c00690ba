import AssentCore
import AssentEngine
import AssentStore
import Crypto
import Foundation

/// The least that a token request with `private_key_jwt` costs: the assertion's signature is verified, an access token
/// is signed, and the spent assertion, the grant and the audit record are written in one transaction.
struct KeyedTokenByHand: Sendable {
    private let clientKey = P256.Signing.PrivateKey()
    private let serverKey = P256.Signing.PrivateKey()
    private let verified: Data
    private let signed: Data
    private let signature: P256.Signing.ECDSASignature

    /// Verifies and signs as many bytes as these: what is signed of an assertion, and of an access token.
    init(verified: Data, signed: Data) throws {
        self.verified = verified
        self.signed = signed
        signature = try clientKey.signature(for: verified)
    }

    /// One request.
    struct Request: HandMadeRequest {
        fileprivate let byHand: KeyedTokenByHand

        /// What it writes.
        let rows: [SQL]

        /// What it verifies and signs.
        func calculate() throws {
            guard byHand.clientKey.publicKey.isValidSignature(byHand.signature, for: byHand.verified),
                try byHand.serverKey.signature(for: byHand.signed).rawRepresentation.count == 64
            else { throw BenchFailure("not signed") }
        }
    }

    /// So many requests.
    func requests(_ count: Int) -> [Request] {
        let now = SystemClock().epochSeconds
        let time = Int64(Date().timeIntervalSince1970 * 1000)
        return (0..<count).map { _ in
            let (assertion, grant, record) = (SystemRandom().token(), SystemRandom().uuid(), SystemRandom().uuid())
            let detail = #"{"client":"office","grant":"\#(grant)"}"#
            return Request(
                byHand: self,
                rows: [
                    """
                    INSERT INTO client_assertions (id, realm, client_id, expires_at)
                    VALUES (\(assertion), \("/alpha"), \("office"), \(now + 660)) ON CONFLICT (id) DO NOTHING
                    """,
                    """
                    INSERT INTO grants (id, realm, client_id, scope, is_offline, created_at, expires_at)
                    VALUES (\(grant), \("/alpha"), \("office"), \("accounts"), 0, \(now), \(now + 3600))
                    """,
                    """
                    INSERT INTO audit (id, at, event, outcome, realm, detail, node, position)
                    VALUES (\(record), \(time), \("oauth.client"), \("success"), \("/alpha"), \(detail),
                        \("by hand"), \(time * 1000))
                    """,
                ])
        }
    }
}
