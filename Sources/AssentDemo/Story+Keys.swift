import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes

/// An installation that registers as a client of its own, whose session and tokens belong to a key as well, and a thief
/// who has copied all but the keys.
extension Story {
    private static let payment: JSONValue = ["to": "Bob", "amount": "50.00", "currency": "EUR"]

    /// Tells of an installation of its own, beside the app in which Ana, who is also the operator here, has signed in.
    func guardByKey(with operating: Assent) async throws {
        narration.tell(
            .step(
                number: 9,
                title: "An installation registers; all it has belongs to its keys: a thief with copies gets nothing"))
        let keys = SoftwareKeyProvider(unprotectedFile: keyFile(ofVault: "bound"))
        let scene = InstallationScene(self)
        let initialToken = try await scene.initialAccessToken(operating)
        let assent = try makeAssent(vault: "bound") { configuration, keys in
            configuration.client.id = InstallationScene.app
            configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: initialToken)
            configuration.dpop = .on(keys: keys)
        }
        let instance = try await scene.register(assent)
        narration.tell(.note(.app, "makes another key for session and tokens, and proves it with every request"))
        try await signIn(assent, forcing: false)
        let tokens = try await assent.tokens.tokens()
        let session = try await assent.tokens.session()
        check(
            "session and tokens belong to one key, which stays in the app's key file",
            tokens.isBound && session?.keyThumbprint == tokens.keyThumbprint)
        let reply = try await assent.send(.post(transfers, json: Self.payment)) { try answer(&$0) }
        check("a payment with her approval and the app's proofs: 201", reply.status == 201)

        guard let session, let refreshToken = tokens.refreshToken else {
            return check("there are a session and a refresh token to steal", false)
        }
        let loot = Thief.Loot(
            accessToken: tokens.accessToken, refreshToken: refreshToken, session: session.token,
            clientID: instance.clientID, registration: instance.address, registrationToken: instance.token,
            initialToken: initialToken)
        try await beRobbed(assent, of: loot)
        try await goOn(assent, after: loot, key: tokens.keyThumbprint)

        let before = try await keys.keyNames().count
        let result = try await assent.unregister()
        let after = try await keys.keyNames().count
        check(
            "she removes this app: signed out, the registration ended, and both keys destroyed",
            result.isComplete && before - after == 2)
        await assent.shutdown()
    }

    /// What a thief tries, over connections of their own, and what the servers answer.
    private func beRobbed(_ assent: Assent, of loot: Thief.Loot) async throws {
        try await Thief.run(against: self) { thief in
            narration.tell(
                .note(.thief, "elsewhere, has copies of all tokens and of the session, but not of the keys"))
            try await stealTokens(thief, assent, loot)
            try await stealSession(thief, assent, loot)
            try await InstallationScene(self).steal(thief, assent, loot)
        }
    }

    private func stealTokens(_ thief: Thief, _ assent: Assent, _ loot: Thief.Loot) async throws {
        let accounts = gateway + "/accounts"
        let credential = try await assent.tokens.credential(for: .get, url: accounts)
        var own: HTTPFields = [.authorization: credential.authorization.reveal()]
        own[.dpop] = credential.proof?.reveal()
        check("the access token with a proof by the app's key: 200", try await plain(own) == 200)
        refused(
            "the same request, copied from the wire",
            try await thief.send(HTTPRequest(.get, url: accounts, headerFields: own)), "401 invalid_dpop_proof")

        let bearer = HTTPFields([.init(name: .authorization, value: "Bearer \(loot.accessToken.reveal())")])
        refused(
            "the access token without a proof, as a bearer token",
            try await thief.send(HTTPRequest(.get, url: accounts, headerFields: bearer)), "401 invalid_token")
        let bound = HTTPFields([.init(name: .authorization, value: "DPoP \(loot.accessToken.reveal())")])
        refused(
            "the access token with a proof by the thief's key",
            try await thief.prove(
                HTTPRequest(.get, url: accounts, headerFields: bound), token: loot.accessToken), "401 invalid_token")

        var form = FormItems([
            "grant_type": "refresh_token", "refresh_token": loot.refreshToken.reveal(), "client_id": loot.clientID,
        ])
        let request = try HTTPRequest(.post, url: try oauth(assent) + "/access_token")
        refused(
            "the refresh token with a proof by the thief's key", try await thief.prove(request, form: form),
            "400 invalid_client")
        form.append("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
        form.append("client_assertion", try await thief.assertion(loot.clientID, for: try oauth(assent)))
        refused(
            "the same with an assertion by the thief's key", try await thief.prove(request, form: form),
            "400 invalid_client")
    }

    private func stealSession(_ thief: Thief, _ assent: Assent, _ loot: Thief.Loot) async throws {
        guard let name = HTTPField.Name(world.endpoints.cookieName) else {
            return check("the session cookie's name can name a field", false)
        }
        let field = HTTPFields([.init(name: name, value: loot.session.reveal())])
        refused(
            "the session without a proof, at the gateway",
            try await thief.send(HTTPRequest(.get, url: gateway + "/accounts", headerFields: field)),
            "401 invalid_dpop_proof")
        let client = assent.configuration.client
        // The code would be the installation's.
        let verifier = SystemRandom().token()
        let query = FormEncoding.encode([
            "response_type": "code", "client_id": loot.clientID, "redirect_uri": client.redirectURI,
            "scope": client.scopes.joined(separator: " "), "code_challenge_method": "S256",
            "code_challenge": Base64URL.encode(SHA2.sha256(verifier.utf8)),
        ])
        let url = try oauth(assent) + "/authorize?" + query
        refused(
            "the session without a proof, to get tokens with it",
            try await thief.send(HTTPRequest(.get, url: url, headerFields: field)), "401 invalid_dpop_proof")
    }

    /// The owner's own tokens are as they were, whatever the thief has tried.
    private func goOn(_ assent: Assent, after loot: Thief.Loot, key: String?) async throws {
        let told = narration.events.count
        let renewed = try await assent.tokens.tokens(rejecting: loot.accessToken)
        // The SDK would get new tokens with the session if the refresh token were spent.
        let neededSession = narration.events.dropFirst(told).contains {
            if case .message(_, _, let text, _) = $0 { text.contains("/authorize") } else { false }
        }
        check(
            "the owner's refresh token was not spent: it gets a new access token for the same key",
            renewed.accessToken != loot.accessToken && renewed.keyThumbprint == key && !neededSession)
        check("she has paid once, and the thief nothing", try await balance(assent) == "150.00")
    }

    /// Where the authorization server's endpoints are.
    func oauth(_ assent: Assent) throws -> String {
        "\(world.endpoints.server)/oauth2/\(try JourneyRealm(assent.configuration.realm).path)"
    }

    func refused(_ what: String, _ answer: Thief.Answer, _ expected: String) {
        check("\(what): \(answer)", answer.description == expected)
    }
}
