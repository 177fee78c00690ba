import Assent
import AssentSigning

/// Signs in a user whom this installation remembers.
struct RememberedSignIn: Sendable {
    let profile: ClientProfile
    let console: Console
    var prompt = Prompt()

    /// The user's name or id, where the command line says it.
    var username: String?

    /// How often the PIN is asked for.
    private static let tries = 5

    /// The SDK with the containers of the users whom the installation remembers.
    ///
    /// - Throws: ``CommandFailure`` when there can be none.
    func assent(transport: (any HTTPTransport)? = nil) async throws -> Assent {
        try profile.checkRemembering()
        guard DevicePlace(profile: profile.name, places: profile.places).isMade else { throw Self.nobody }
        return try profile.assent(
            device: try await DeviceStore.open(profile, besideVault: true), transport: transport)
    }

    /// Asks for the PIN, and again after a wrong one.
    ///
    /// - Returns: the user's name.
    func signIn(_ assent: Assent) async throws -> String {
        let user = try await user(assent)
        let question = "PIN of \(DisplayText.escapedForTerminal(user.name))"
        for _ in 1..<Self.tries {
            do {
                try await logIn(assent, user.id, question)
                return user.name
            } catch let error as ResourceError where error.code == .invalidPin && (error.triesLeft ?? 0) > 0 {
                console.warn(
                    "\(DisplayText.escapedForTerminal(error.detail)) Tries left: \(error.triesLeft ?? 0).")
            }
        }
        try await logIn(assent, user.id, question)
        return user.name
    }

    /// Asks for the PIN once.
    private func logIn(_ assent: Assent, _ user: String, _ question: String) async throws {
        do {
            try await assent.logIn(user, pin: try prompt.secret(question))
        } catch let error as ResourceError where error.code == .userNotAuthenticated {
            // The words in front say how to sign in.
            throw await explained(error, of: user, assent, "Then run")
        }
    }

    /// The same error; where an enrolment was interrupted, with the command by which it goes on.
    private func explained(
        _ error: ResourceError, of user: String, _ assent: Assent, _ beginning: String
    ) async -> ResourceError {
        let containers = (try? await assent.device.containers(matching: ContainerFilter(user: user))) ?? []
        guard !containers.isEmpty, containers.allSatisfy(\.isInterrupted) else { return error }
        return ResourceError(
            error.domain, error.code, error.detail,
            suggestion: "\(beginning) 'assent device enroll --here' again: it goes on where it was.")
    }

    /// Signs the user in by the key of the container alone.
    func authenticate(_ assent: Assent, scopes: [String]) async throws {
        let known = profile.file.registration?.implicitScopes ?? []
        // Opens the vault, whose own errors say more than those of a call.
        _ = try await assent.registration?.current()
        let user = try await user(assent).id
        do throws(ResourceError) {
            try await assent.userClient.implicitlyAuthenticate(user, scopes: scopes.isEmpty ? known : scopes)
        } catch {
            guard error.code == .userNotAuthenticatedImplicitly else { throw error }
            throw await explained(error, of: user, assent, "Sign in with 'assent login', then run")
        }
    }

    private static let nobody = CommandFailure(
        "Nobody is remembered here. Sign in with 'assent login', then run 'assent device enroll --here'.")

    /// The user who is named, or the only one.
    private func user(_ assent: Assent) async throws -> (id: String, name: String) {
        if let username { return (username, username) }
        let containers = try await assent.device.containers(
            matching: ContainerFilter(issuer: try profile.file.signingIssuer))
        guard let only = containers.first else { throw Self.nobody }
        guard containers.allSatisfy({ $0.userID == only.userID }) else {
            let names = Set(containers.map(\.userName)).sorted().joined(separator: ", ")
            throw CommandFailure(
                DisplayText.escapedForTerminal("Several users are remembered here: \(names). Name one with --username.")
            )
        }
        return (only.userID, only.userName)
    }
}

extension ClientProfile {
    /// - Throws: ``CommandFailure`` unless installations of this client remember users.
    func checkRemembering() throws {
        guard file.registration?.remembersUsers == true else {
            throw CommandFailure(
                "The client's file does not say that installations remember users. Nothing was sent. Where the server lets them, "
                    + "write 'registration: {remembersUsers: true}' into it, run 'assent logout', and sign in again.")
        }
    }
}
