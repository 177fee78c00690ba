import Assent
import AssentSigningProtocol

/// An installation that remembers its user: by a PIN, and without one for what is not secret.
struct RememberedScene: Sendable {
    /// What Ana chooses, here and on her phone.
    static let pin = Secret("0042")

    private let story: Story

    init(_ story: Story) { self.story = story }

    /// Tells of an installation that is registered, in which nobody has signed in.
    func tell(with assent: Assent) async throws {
        let user = try await enrol(assent)
        try await typePIN(assent, user)
        try await greet(assent, user)
    }

    private func enrol(_ assent: Assent) async throws -> String {
        story.narration.tell(.note(.user, "signs in at this installation once, and chooses a PIN for it"))
        try await story.signIn(assent, forcing: false)
        if let session = try await assent.tokens.session() { story.remember("session token", session.token) }
        let container = try await assent.device.enrol { _ in Self.pin }
        story.check("the installation remembers her: no code, no digits", container.state == .active)
        let result = await assent.signOut()
        let user = try await assent.user()
        story.check("she signs out, and nobody is signed in", result.isComplete && user == nil)
        return container.userID
    }

    private func typePIN(_ assent: Assent, _ user: String) async throws {
        let wrong = await ResourceError.thrown { try await assent.logIn(user, pin: Secret("9999")) }
        story.check(
            "a wrong PIN: 9009, and she is told that \(wrong?.triesLeft ?? 0) tries remain",
            wrong?.code == .invalidPin && wrong?.triesLeft == 4)
        try await assent.logIn(user, pin: Self.pin)
        let account = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
        story.check("the right one: her account, 200", account.status == 200)
        _ = await assent.signOut()
    }

    private func greet(_ assent: Assent, _ user: String) async throws {
        try await assent.userClient.implicitlyAuthenticate(user, scopes: ["profile"])
        let greeting = try await assent.userClient.sendImplicitRequest(.get("greeting"))
        story.check("the app greets her, and she has typed nothing: 200", greeting.status == 200)
        let account = try await assent.userClient.sendImplicitRequest(.get("accounts"))
        story.check("the same token at her account: 403 token_kind", account.refusesKind)

        let stolen = StolenToken(
            token: try await assent.tokens.implicit.token(rejecting: nil), name: "her implicit token",
            missing: "there is a token of a remembered user to steal")
        try await stolen.present(
            at: ["at her account": "/accounts", "at the greeting": "/greeting"], of: story)
    }
}
