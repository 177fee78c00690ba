import AssentCore
import AssentPayload
import AssentTokens
import HTTPTypes

/// Proves the key of this installation in handshakes of payload encryption. The registration is made of the transport
/// that asks for the proofs, so it is attached later, and not kept: each would keep the other for ever.
final class InstallationProver: PayloadProver {
    private struct Attached {
        weak var registration: AppRegistration?
    }

    private let attached = Locked(Attached())

    private var known: AppRegistration? { attached.withLock { $0.registration } }

    /// - Returns: a layer that keeps the registration, for a pipeline that may be all that an app keeps.
    @discardableResult
    func attach(_ registration: AppRegistration?) -> KeptRegistration {
        attached.withLock { $0.registration = registration }
        return KeptRegistration(registration: registration)
    }

    func clientID() async throws -> String? { try await known?.current()?.clientID }

    func proof(url: String, claim: String, nonce: String?) async throws -> String {
        guard let registration = known else {
            throw TokenError(.notRegistered, "The configuration has no registration.")
        }
        return try await registration.proof(.post, url: url, claims: ["pe": .string(claim)], nonce: nonce)
    }

    func registration() async -> ClientSession.Registration {
        switch await known?.isAlive() {
        case .some(true): .there
        case .some(false): .gone
        case .none: .unreadable
        }
    }
}
