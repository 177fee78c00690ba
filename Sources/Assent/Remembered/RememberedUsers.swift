import AssentAuthorization
import AssentCore
import AssentJourney
import AssentResources
import AssentSigning
import AssentTokens

/// The users whom this installation remembers: each has a container here.
struct RememberedUsers: Sendable {
    let device: Assent.Device
    let tokens: TokenManager
    /// Ends sessions.
    let journeys: JourneyClient
    let admission: DeviceAdmission?
    let integrity: IntegrityGuard
    /// Cookies that resources have set in implicit calls.
    let cookies: CookieStore
    /// Who was authenticated implicitly last.
    let lastUser = Locked<String?>(nil)

    /// Authenticates a user by the device key of the user's container.
    func authenticateImplicitly(_ user: String, scopes: [String]) async throws {
        try integrity.examine()
        try await admission?.admitImplicit()
        let container: SigningContainer
        do {
            container = try await self.container(of: user, .implicit)
        } catch let error as SigningError {
            throw ResourceError(
                .fetchImplicitResource, .userNotAuthenticatedImplicitly, error.detail, suggestion: error.suggestion)
        }
        do {
            try await tokens.implicit.authenticate(user: container.userID, scopes: scopes) { facts in
                do {
                    return try await container.implicitLogin().assertion(SigningLoginRequest(facts))
                } catch let error as SigningError {
                    throw TokenError(.implicitUserMissing, error.detail, suggestion: error.suggestion)
                }
            }
        } catch let error as TokenError where error.loginRefusal == .containerEnded || error.loginRefusal == .shredded {
            guard try await hasEnded(container) else {
                if let interruption = await interruption(of: container, .implicit) { throw interruption }
                throw error
            }
            tokens.implicit.end()
            throw ResourceError.userDeregistered
        }
        let isAnother = lastUser.withLock { last -> Bool in
            defer { last = container.userID }
            return last != container.userID
        }
        // They may say who the user before was.
        if isAnother { await cookies.removeAll() }
    }

    /// The container of a user who is remembered here.
    func container(of user: String, _ kind: CallKind) async throws -> SigningContainer {
        do {
            return try await device.signing.loginContainer(of: user)
        } catch let error as SigningError where error.code == .invalidContainer {
            throw notAuthenticated(
                kind, "No user with this name is remembered here.", "Let the user sign in, and enrol this installation."
            )
        }
    }

    /// What the app hears where the container's enrolment was interrupted; `nil` where it was not.
    func interruption(of container: SigningContainer, _ kind: CallKind) async -> ResourceError? {
        guard (try? await device.signing.container(container.id))?.isInterrupted == true else { return nil }
        return notAuthenticated(
            kind, "The enrolment of this installation was interrupted before it had come to its end.",
            "Let the user sign in, and enrol this installation again: it goes on where it was.")
    }

    private func notAuthenticated(_ kind: CallKind, _ detail: String, _ suggestion: String) -> ResourceError {
        ResourceError(
            kind == .implicit ? .fetchImplicitResource : .authentication,
            kind == .implicit ? .userNotAuthenticatedImplicitly : .userNotAuthenticated, detail,
            suggestion: suggestion)
    }

    /// Whether the server has signed that the container has ended, or that its password opens nothing any more. Its
    /// errors are not signed, and remove nothing.
    func hasEnded(_ container: SigningContainer) async throws -> Bool {
        do {
            let status = try await container.status()
            guard status.passwords.contains(where: { $0.state == .shredded }) else {
                return [.revoked, .void].contains(status.state)
            }
            // Nothing signs this user in any more: what is left is removed here, and the server is told.
            try await container.delete(reason: "SHREDDED")
            return true
        } catch let error as SigningError {
            // It may have been removed by a status that another task has got.
            guard error.code == .invalidContainer else { return false }
            return true
        }
    }
}

extension SigningLoginRequest {
    init(_ facts: LoginFacts) {
        self.init(
            audience: facts.audience, keyThumbprint: facts.keyThumbprint, nonce: facts.nonce, time: facts.time)
    }
}

extension ResourceError {
    static var userDeregistered: ResourceError {
        ResourceError(.generic, .userDeregistered, "The server has ended what remembered this user here.")
    }
}
