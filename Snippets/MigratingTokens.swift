// The counterparts of docs/migrating-tokens.md, so that the page cannot say what does not compile: a test compares the
// two.
import Assent
import Foundation

func configuration(directory: URL, keyFile: URL, primary: Pin, backup: Pin) -> Assent.Configuration {
    let client = Assent.Client(
        id: "bank-app", redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "profile"])
    var configuration = Assent.Configuration(
        server: "https://am.bank.example/am", realm: "alpha", client: client,
        resources: ["https://api.bank.example": .accessToken],
        pins: ["am.bank.example": [primary, backup], "api.bank.example": [primary, backup]],
        vault: Assent.Vault.file(at: directory, keys: .softwareFile(keyFile)))
    configuration.issuer = "https://am.bank.example/am/oauth2/realms/root/realms/alpha"
    configuration.sessionCookieName = "iPlanetDirectoryPro"
    configuration.renewBefore = 60
    configuration.authorizationParameters = [.init("acr_values", "Login")]
    configuration.logger.logLevel = .warning
    return configuration
}

func ownStorage(_ store: any SecretStore, in configuration: inout Assent.Configuration) {
    configuration.vault = Assent.Vault.store(store)
}

func handleSuccess(_ assent: Assent, askPassword: () async throws -> String) async throws {
    let session = try await assent.journey("Login") { step in
        step[NameCallback.self]?.name = "ana"
        step[PasswordCallback.self]?.password = try await askPassword()
        return .next
    }
    print(session.successURL, session.realm, session.details.names)
    guard let user = try await assent.user() else { return }  // nobody is signed in
    do {
        let tokens = try await user.token()  // renewed within the threshold, by refresh token or session
        print("\(tokens)")  // until when, and how many scopes; never the token
        let accessToken: String = tokens.accessToken.reveal()  // the one way to the text, easy to search for
        use(accessToken, tokens)
    } catch let error as TokenError where error.code == .signInNeeded {
        print("sign in again: \(error.signInReason?.description ?? "")")
    } catch let error as TokenError where error.isTransient {
        print("try again later; nothing was removed: \(error)")
    }
    if user.session?.token.reveal() == nil { print("signed in in a browser: there is no session") }
}

func use(_ accessToken: String, _ tokens: TokenSet) {
    print(accessToken.count, tokens.refreshToken != nil, tokens.idToken?.subject ?? "nobody")
    print(tokens.isValid(at: Date(), margin: 60))
}

func manage(_ user: Assent.User) async throws {
    let claims = try await user.userInfo()
    let refreshed = try await user.refresh()  // new tokens although the old ones are good
    let revoked = await user.revoke()  // the session stays
    let result = await user.signOut()
    for undone in result.undone { print("the server could not be told: \(undone)") }
    print(claims["name"]?.string ?? "", refreshed, revoked.isComplete)
}

func leave(_ assent: Assent) async throws {
    let result = await assent.signOut()
    print(result.isComplete)
    let stillUndone = try await assent.retrySignOuts()  // later, when there is a network
    print("\(stillUndone.count) things the server must still be told")
}

func signInWithBrowser(_ assent: Assent, open: @escaping @Sendable (String) -> Void) async throws -> Assent.User {
    do {
        return try await assent.signIn(parameters: [.init("login_hint", "ana")]) { url in open(url) }
    } catch let error as TokenError where error.code == .authorizationRefused {
        print("the server said no: \(error.oauthError ?? "")")  // for example access_denied
        throw error
    }
}

func balance(_ assent: Assent) async throws -> Int {
    try await assent.send(ResourceRequest.get("https://api.bank.example/balance")).status
}

func manager(transport: any HTTPTransport, store: any SecretStore) throws -> TokenManager {
    var configuration = try TokenConfiguration(
        issuer: "https://am.bank.example/am/oauth2/realms/root/realms/alpha", clientID: "bank-app",
        redirectURI: "https://bank.example/app/callback", scopes: ["openid", "profile"])
    configuration.renewBefore = 120  // the threshold, in seconds
    configuration.authorizationParameters = [.init("acr_values", "Login")]
    return TokenManager(configuration: configuration, transport: transport, store: store)
}
