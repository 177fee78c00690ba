import AssentCore
import AssentOTP
import AssentTesting
import Crypto
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// What apps do, step by step.
extension ServerFixture {
    static let cookieName = "iPlanetDirectoryPro"

    /// The fields of a request of an app with a session.
    static func session(_ token: String) -> [(String, String)] { [(cookieName, token)] }

    /// The field of a request with an access token.
    static func bearer(_ token: String) -> [(String, String)] { [("Authorization", "Bearer \(token)")] }

    func account(_ username: String) throws -> GeneratedAccount {
        try #require(accounts.first { $0.username == username })
    }

    /// A code that was not used yet: the clock moves on to the next time step.
    func freshCode(_ username: String) throws -> String {
        clock.advance(by: 30)
        return try currentCode(username)
    }

    func currentCode(_ username: String) throws -> String {
        try TOTP(secret: account(username).totpSeed).code(at: clock.now)
    }

    /// Goes through a journey with an answer for each type of callback.
    func runJourney(
        realm: String = "alpha", _ query: [(String, String)], _ fields: [(String, String)] = [],
        _ answer: (String) throws -> JSONValue?
    ) async throws -> Answer {
        let url = json("authenticate", realm: realm)
        var reply = try await send("POST", url + "?" + Self.query(query), fields)
        for _ in 0..<8 {
            guard reply.json["authId"] != nil else { return reply }
            let filled = try Self.filled(reply.json, answer).serializedBytes()
            reply = try await send("POST", url, fields + [("Content-Type", "application/json")], body: filled)
        }
        return reply
    }

    /// A session as a journey's end makes it, for tests of what comes after.
    func session(_ username: String = "ana", realm: String = "alpha") async throws -> String {
        let context = server.context
        let user = try #require(await Users(context).find(username: username, realm: "/" + realm))
        return try await Sessions(context).begin(userID: user.id, realm: "/" + realm, limits: SessionLimits()).token
            .reveal()
    }

    /// Signs in through a journey and returns the session's token.
    func signIn(_ username: String = "ana", journey: String = "Quick", realm: String = "alpha") async throws -> String {
        let account = try account(username)
        let reply = try await runJourney(
            realm: realm, [("authIndexType", "service"), ("authIndexValue", journey)]
        ) { type in
            switch type {
            case "NameCallback": .string(username)
            case "PasswordCallback": .string(account.password.reveal())
            case "TextInputCallback": .string(try freshCode(username))
            default: nil
            }
        }
        return try #require(reply.json["tokenId"]?.string)
    }

    struct Tokens: Sendable {
        let code: String
        let verifier: String
        let access: String
        let refresh: String
        let id: String
    }

    /// Authorization code with PKCE, by a session.
    func tokens(
        session: String, realm: String = "alpha", scope: String = "openid profile accounts", client: String = "bank-app"
    ) async throws -> Tokens {
        let verifier = SystemRandom().token()
        let challenge = Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8))))
        let redirect = try await authorize(
            session: session, realm: realm,
            [
                ("scope", realm == "alpha" ? scope : "openid"), ("code_challenge", challenge), ("client_id", client),
            ])
        let code = try #require(redirect.parameter("code"))
        let reply = try await send(
            "POST", oauth("access_token", realm: realm), [("Content-Type", "application/x-www-form-urlencoded")],
            text: Self.query([
                ("grant_type", "authorization_code"), ("code", code), ("client_id", client),
                ("redirect_uri", "http://127.0.0.1/callback"), ("code_verifier", verifier),
            ]))
        let access = try #require(reply.json["access_token"]?.string, "\(reply.status): \(reply.text)")
        return Tokens(
            code: code, verifier: verifier, access: access,
            refresh: try #require(reply.json["refresh_token"]?.string), id: try #require(reply.json["id_token"]?.string)
        )
    }

    /// A request to `authorize`; `parameters` add to the usual ones or replace them.
    func authorize(
        session: String?, realm: String = "alpha", _ parameters: [(String, String)] = []
    ) async throws -> Answer {
        var all = [
            ("response_type", "code"), ("client_id", "bank-app"), ("redirect_uri", "http://127.0.0.1/callback"),
            ("state", "st/1"), ("scope", "openid"), ("code_challenge_method", "S256"),
            ("code_challenge", Base64URL.encode([UInt8](repeating: 7, count: 32))),
        ]
        all.removeAll { usual in parameters.contains { $0.0 == usual.0 } }
        all += parameters.filter { !$0.1.isEmpty }
        return try await send(
            "GET", oauth("authorize", realm: realm) + "?" + Self.query(all), session.map(Self.session) ?? [])
    }

    func refresh(_ token: String, attempt: String? = nil) async throws -> Answer {
        try await send(
            "POST", oauth("access_token"), [("Content-Type", "application/x-www-form-urlencoded")],
            text: Self.query(Self.refreshForm(token, attempt: attempt)))
    }

    static func refreshForm(_ token: String, attempt: String?, client: String = "bank-app") -> [(String, String)] {
        [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", client)]
            + (attempt.map { [("attempt_id", $0)] } ?? [])
    }

    /// The transaction id of an advice in header form.
    static func transactionID(_ reply: Answer) throws -> String {
        let field = try #require(reply["WWW-Authenticate"])
        let match = try #require(field.firstMatch(of: /advices="([^"]*)"/))
        let bytes = try #require(Data(base64Encoded: String(match.1)))
        let json = try JSONValue.parse([UInt8](bytes))
        return try #require(json["TransactionConditionAdvice"]?.strings?.first)
    }

    /// Approves a transaction in its journey.
    func approve(_ id: String, session: String, username: String = "ana") async throws -> Answer {
        let xml =
            #"<Advices><AttributeValuePair><Attribute name="TransactionConditionAdvice"/><Value>\#(id)</Value></AttributeValuePair></Advices>"#
        return try await runJourney(
            [("authIndexType", "composite_advice"), ("authIndexValue", xml)], Self.session(session)
        ) { type in
            switch type {
            case "ConfirmationCallback": 0
            case "TextInputCallback": .string(try freshCode(username))
            default: nil
            }
        }
    }

    /// Ends a session.
    func signOut(_ session: String) async throws {
        let reply = try await send(
            "POST", json("sessions?_action=logout"),
            Self.session(session) + [("Content-Type", "application/json")], text: "{}")
        #expect(reply.status == 200)
    }

    /// The fields of a JSON request that wants advices in the header.
    static let jsonFields = [("Content-Type", "application/json"), ("x-authenticate-response", "header")]

    /// Asks for a transaction at the gateway and approves it.
    func completedTransaction(
        _ target: String = "/nods", method: String = "POST", body: String = FixtureBody.transfer, session: String,
        credentials: [(String, String)]? = nil
    ) async throws -> String {
        let refused = try await send(
            method, gateway(target), Self.jsonFields + (credentials ?? Self.session(session)), text: body)
        let id = try Self.transactionID(refused)
        let approved = try await approve(id, session: session)
        #expect(approved.status == 200)
        #expect(approved.json["tokenId"]?.string == session)
        return id
    }

    static func query(_ items: [(String, String)]) -> String {
        items.map { "\($0.0)=\(escaped($0.1))" }.joined(separator: "&")
    }

    static func escaped(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    static func filled(_ page: JSONValue, _ answer: (String) throws -> JSONValue?) rethrows -> JSONValue {
        var object = page.object ?? JSONObject()
        object["callbacks"] = .array(
            try (page["callbacks"]?.array ?? []).map { callback in
                guard let type = callback["type"]?.string, let value = try answer(type), var filled = callback.object,
                    var input = filled["input"]?.array?.first?.object
                else { return callback }
                input["value"] = value
                filled["input"] = [.object(input)]
                return .object(filled)
            })
        return .object(object)
    }
}

/// Bodies that tests send.
enum FixtureBody {
    static let transfer = #"{"to":"Bob","amount":"200.00","currency":"EUR"}"#
}

extension Answer {
    /// A parameter of the query that `Location` has.
    func parameter(_ name: String) -> String? {
        self["Location"].flatMap { URLComponents(string: $0)?.queryItems?.first { $0.name == name }?.value }
    }

    /// The `error` of an OAuth error.
    var error: String? { json["error"]?.string }
}
