import Assent
import AssentServer
import Foundation
import HTTPTypes

/// How an installation becomes a client of its own, and what a thief makes of a copy of its registration.
extension Story {
    /// The app's id in the configuration.
    static let app = "bank-pay"

    /// What lets one installation register: its operator makes it, with the rights that the first start gives out.
    func initialAccessToken(_ operating: Assent) async throws -> Secret {
        guard let file = world.endpoints.bootstrapFile, let session = try await operating.tokens.session() else {
            throw BankProcess.Failure(description: "the server has made no file for its first administrator")
        }
        let token = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .newlines)
        remember("administrator's first token", Secret(token))
        let realm = try JourneyRealm(operating.configuration.realm).path
        let url = "\(world.endpoints.server)/json/\(realm)/administration?_action="
        let fields = [(world.endpoints.cookieName, session.token.reveal()), ("X-Requested-With", "assent")]
        let first = try await post(url + "bootstrap", ["token": .string(token)], fields)
        let reply = try await post(url + "createRegistrationToken", ["app": .string(Self.app), "count": 1], fields)
        let made = try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))["token"]?.string
        check(
            "the operator makes an initial access token, good for one installation",
            first.status == 200 && reply.status == 200 && made != nil)
        let secret = Secret(made ?? "")
        remember("initial access token", secret)
        return secret
    }

    /// Registers the installation, which its first sign-in would do by itself.
    func register(_ assent: Assent) async throws -> RegisteredInstance {
        narration.tell(.note(.app, "makes a key, and registers itself with a proof by it"))
        guard let instance = try await assent.registration?.register() else {
            throw BankProcess.Failure(description: "the app's configuration has no registration")
        }
        remember("registration token", instance.token)
        check(
            "this installation is a client of its own: \(DisplayText.escapedForTerminal(instance.clientID))",
            instance.clientID.hasPrefix(Self.app + "~"))
        return instance
    }

    /// What a copy of the registration token, and of the initial access token, is worth.
    func stealRegistration(_ thief: Thief, _ assent: Assent, _ loot: Thief.Loot) async throws {
        let bearer: HTTPFields = [.authorization: "Bearer \(loot.registrationToken.reveal())"]
        refused(
            "the registration token as a bearer token, to end the registration",
            try await thief.send(HTTPRequest(.delete, url: loot.registration, headerFields: bearer)),
            "401 invalid_token")
        let bound: HTTPFields = [.authorization: "DPoP \(loot.registrationToken.reveal())"]
        refused(
            "the registration token with a proof by the thief's key",
            try await thief.prove(
                HTTPRequest(.delete, url: loot.registration, headerFields: bound), token: loot.registrationToken),
            "401 invalid_token")
        let asked: JSONValue = ["software_id": .string(Self.app), "jwks": try thief.keySet.json]
        let initial: HTTPFields = [.authorization: "Bearer \(loot.initialToken.reveal())"]
        refused(
            "the initial access token, which is used up, with the thief's own key",
            try await thief.prove(
                HTTPRequest(.post, url: try oauth(assent) + "/register", headerFields: initial), json: asked),
            "401 invalid_token")
    }
}
