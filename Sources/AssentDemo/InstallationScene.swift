import Assent
import AssentServer
import Foundation
import HTTPTypes

/// How an installation becomes a client of its own in the story, and what a thief makes of copies of its registration.
struct InstallationScene: Sendable {
    /// The app's id in the configuration.
    static let app = "bank-pay"

    private let story: Story

    init(_ story: Story) { self.story = story }

    /// What lets installations register: the operator makes it, with the rights that the first start gives out.
    ///
    /// - Parameters:
    ///   - operating: the app in which the operator has signed in.
    ///   - count: how many installations it is good for.
    /// - Returns: the token; empty when the server made none, which is a check that fails.
    /// - Throws: what the exchanges throw, and `BankProcess.Failure` when nobody can become the first administrator.
    func initialAccessToken(_ operating: Assent, count: Int64 = 1) async throws -> Secret {
        guard let file = story.world.endpoints.bootstrapFile else {
            throw BankProcess.Failure(description: "the server has made no file for its first administrator")
        }
        let token = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .newlines)
        let first = try await administer(operating, "bootstrap", ["token": .string(token)])
        guard first.status == 200 else {
            throw BankProcess.Failure(description: "the server takes nobody as its first administrator")
        }
        return try await self.token(operating, count: count)
    }

    /// The same for an operator who has the rights already.
    func token(_ operating: Assent, count: Int64) async throws -> Secret {
        let reply = try await administer(
            operating, "createRegistrationToken", ["app": .string(Self.app), "count": .integer(count)])
        let made = try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))["token"]?.string
        story.check(
            "the operator makes an initial access token, good for \(count) installation\(count == 1 ? "" : "s")",
            reply.status == 200 && made != nil)
        let secret = Secret(made ?? "")
        story.remember("initial access token", secret)
        return secret
    }

    /// Asks the server's administration with the session of an app.
    func administer(_ operating: Assent, _ action: String, _ body: JSONValue) async throws -> HTTPReply {
        let session = try await operating.tokens.session()
        let realm = try JourneyRealm(operating.configuration.realm).path
        let endpoints = story.world.endpoints
        return try await story.post(
            "\(endpoints.server)/json/\(realm)/administration?_action=\(action)", body,
            [(endpoints.cookieName, session?.token.reveal() ?? ""), ("X-Requested-With", "assent")])
    }

    /// Registers the installation, which its first sign-in would do by itself.
    func register(_ assent: Assent) async throws -> RegisteredInstance {
        story.narration.tell(.note(.app, "makes a key, and registers itself with a proof by it"))
        guard let instance = try await assent.registration?.register() else {
            throw BankProcess.Failure(description: "the app's configuration has no registration")
        }
        story.remember("registration token", instance.token)
        story.check(
            "this installation is a client of its own: \(DisplayText.escapedForTerminal(instance.clientID))",
            instance.clientID.hasPrefix(Self.app + "~"))
        return instance
    }

    /// What a copy of the registration token, and of the initial access token, is worth.
    func steal(_ thief: Thief, _ assent: Assent, _ loot: Thief.Loot) async throws {
        let bearer: HTTPFields = [.authorization: "Bearer \(loot.registrationToken.reveal())"]
        story.refused(
            "the registration token as a bearer token, to end the registration",
            try await thief.send(HTTPRequest(.delete, url: loot.registration, headerFields: bearer)),
            "401 invalid_token")
        let bound: HTTPFields = [.authorization: "DPoP \(loot.registrationToken.reveal())"]
        story.refused(
            "the registration token with a proof by the thief's key",
            try await thief.prove(
                HTTPRequest(.delete, url: loot.registration, headerFields: bound), token: loot.registrationToken),
            "401 invalid_token")
        let asked: JSONValue = ["software_id": .string(Self.app), "jwks": try thief.keySet.json]
        let initial: HTTPFields = [.authorization: "Bearer \(loot.initialToken.reveal())"]
        story.refused(
            "the initial access token, which is used up, with the thief's own key",
            try await thief.prove(
                HTTPRequest(.post, url: try story.oauth(assent) + "/register", headerFields: initial), json: asked),
            "401 invalid_token")
    }
}
