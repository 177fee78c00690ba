import Assent
import AssentOTP
import AssentServer
import Foundation
import HTTPTypes
import Logging

/// What the story does past the SDK, as an attacker or a careless program would.
extension Story {
    /// A transfer by hand with the app's own access token, and with a transaction's id if there is one.
    func raw(
        _ assent: Assent, _ json: JSONValue, id: String?, quietly: Bool = false, wishingHeader: Bool = true,
        at address: String? = nil
    ) async throws -> HTTPReply {
        var url = address ?? transfers
        if let id { url = URLText.appending("_txid", id, to: url) }
        let token = try await assent.tokens.tokens().accessToken
        var pairs = [
            ("Authorization", "Bearer \(token.reveal())"), ("Content-Type", "application/json"),
            ("Idempotency-Key", SystemRandom().uuid()),
        ]
        if wishingHeader { pairs.append(("x-authenticate-response", "header")) }
        let fields = Self.fields(pairs)
        return try await send(.post, url, fields, body: HTTPBody(json.serializedBytes()), quietly: quietly)
    }

    /// The policy decision on the transfer, asked over REST with the user's own session.
    func evaluate(_ assent: Assent) async throws -> JSONValue {
        let session = try await assent.tokens.session()
        let question: JSONValue = [
            "resources": [.string(transfers)], "application": "bank",
            "environment": [
                "method": ["POST"], "contentType": ["application/json"],
                "body": [.string(Base64URL.encode(Self.transfer.serializedBytes()))],
            ],
        ]
        let url = world.endpoints.server + "/json/realms/root/realms/alpha/policies?_action=evaluate"
        let fields = Self.fields([
            (world.endpoints.cookieName, session?.token.reveal() ?? ""), ("Content-Type", "application/json"),
            ("Accept-API-Version", "resource=2.0,protocol=1.0"),
        ])
        let reply = try await send(.post, url, fields, body: HTTPBody(question.serializedBytes()), quietly: false)
        return try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))
    }

    /// The status of a reading with these credentials and nothing else.
    func plain(_ fields: HTTPFields) async throws -> Int {
        try await send(.get, gateway + "/accounts", fields, body: nil, quietly: false).status
    }

    /// A transaction that the user has approved and that nobody has used.
    func approve(_ assent: Assent, _ json: JSONValue) async throws -> String {
        let reply = try await raw(assent, json, id: nil)
        guard let received = try ReceivedAdvice(reply.response), let id = received.advice.transactionID else {
            throw BankProcess.Failure(description: "the gateway gave no advice")
        }
        let journeys = JourneyClient(
            configuration: try JourneyConfiguration(
                server: world.endpoints.server, realm: assent.configuration.realm,
                sessionCookieName: world.endpoints.cookieName), transport: narrating, clock: clock, logger: logger)
        _ = try await journeys.run(advice: received.advice, session: try await assent.tokens.session()) { step in
            if let options = step[ConfirmationCallback.self]?.options {
                step[ConfirmationCallback.self]?.selectedValue = options.first?.value
            }
            if step[TextInputCallback.self] != nil {
                let code = try freshCode()
                step[TextInputCallback.self]?.text = code
            }
            return .next
        }
        return id
    }

    /// Sends JSON with these further fields.
    func post(_ url: String, _ json: JSONValue, _ pairs: [(String, String)]) async throws -> HTTPReply {
        let fields = Self.fields(pairs + [("Content-Type", "application/json")])
        return try await send(.post, url, fields, body: HTTPBody(json.serializedBytes()), quietly: false)
    }

    /// Gets JSON with these fields.
    func get(_ url: String, _ pairs: [(String, String)]) async throws -> JSONValue {
        let reply = try await send(.get, url, Self.fields(pairs), body: nil, quietly: false)
        return try JSONValue.parse(try await reply.body.collect(upTo: 1 << 18))
    }

    private var narrating: NarratingTransport {
        NarratingTransport(transport: transport, narration: narration, parties: parties)
    }

    private func send(
        _ method: HTTPRequest.Method, _ url: String, _ fields: HTTPFields, body: HTTPBody?, quietly: Bool
    ) async throws -> HTTPReply {
        var request = HTTPRequest(url: url, method: method)
        request.headerFields = fields
        let call = HTTPCall(request, body: body, limits: HTTPLimits())
        return try await quietly ? transport.send(call) : narrating.send(call)
    }

    private static func fields(_ pairs: [(String, String)]) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in pairs {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        return fields
    }
}

extension HTTPRequest {
    fileprivate init(url: String, method: HTTPRequest.Method) {
        let origin = try? Origin(url)
        let path = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).dropFirst(3).first ?? ""
        self.init(method: method, scheme: origin?.scheme, authority: origin?.authority, path: "/" + path)
    }
}
