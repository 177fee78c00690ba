// The counterparts of docs/migrating-tokens.md, so that the page cannot say what does not compile.
import Assent
import Foundation

// snippet.configuration
func makeAssent(directory: URL, keyFile: URL, primary: Pin, backup: Pin) throws -> Assent {
    try Assent(
        .init(
            server: "https://am.bank.example/am", realm: "alpha",
            client: .init(id: "bank-app", redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "profile"]),
            resources: ["https://api.bank.example": .accessToken],
            pins: ["am.bank.example": [primary, backup], "api.bank.example": [primary, backup]],
            vault: .file(at: directory, keys: .softwareFile(keyFile))))
}
// snippet.end

// snippet.token
func showToken(_ assent: Assent) async throws {
    guard let user = try await assent.user() else { return }  // nobody is signed in
    do {
        let tokens = try await user.token()  // renewed within the threshold, by refresh token or session
        print(tokens)  // tells until when and how many scopes, never the token
        let accessToken: String = tokens.accessToken.reveal()  // the one way to the text, easy to search for
        _ = accessToken
    } catch let error as TokenError where error.code == .signInNeeded {
        print("sign in again: \(error.signInReason?.description ?? "")")
    } catch let error as TokenError where error.isTransient {
        print("try again later; nothing was removed: \(error)")
    }
}
// snippet.end

// snippet.user
func useUser(_ user: Assent.User) async throws {
    let claims = try await user.userinfo()
    print(claims["name"]?.string ?? "")
    try await user.refresh()  // new tokens although the old ones are good
    let revoked = await user.revoke()  // the session stays
    print(revoked.isComplete)
    let result = await user.logout()
    for undone in result.undone { print("the server could not be told: \(undone)") }
}
// snippet.end

// snippet.retry
func laterWhenOnline(_ assent: Assent) async throws {
    let stillUndone = try await assent.retryLogout()
    print("\(stillUndone.count) things the server must still be told")
}
// snippet.end

// snippet.browser
func signInWithBrowser(_ assent: Assent, open: @escaping @Sendable (String) -> Void) async throws -> Assent.User {
    do {
        return try await assent.login(parameters: [.init("login_hint", "ana")], browser: open)
    } catch let error as TokenError where error.code == .authorizationRefused {
        print("the server said no: \(error.oauthError ?? "")")  // for example access_denied
        throw error
    }
}
// snippet.end

// snippet.manager
func manager(transport: any HTTPTransport, store: any SecretStore) throws -> TokenManager {
    var configuration = try TokenConfiguration(
        issuer: "https://am.bank.example/am/oauth2/realms/root/realms/alpha", clientID: "bank-app",
        redirectURI: "https://bank.example/app/callback", scopes: ["openid", "profile"])
    configuration.renewBefore = 120  // the threshold, in seconds
    configuration.authorizationParameters = [.init("acr_values", "Login")]
    return TokenManager(configuration: configuration, transport: transport, store: store)
}
// snippet.end
