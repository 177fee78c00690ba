import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@testable import AssentAuthorization

typealias Exchange = InMemoryTransport.Exchange

let am = "https://am.example.com/am"
let api = "https://api.bank.example"
let authenticate = "\(am)/json/realms/root/authenticate"
let txid = "7b8bfd4c-60fe-4271-928d-d09b94496f84"
let transfer = #"{"to":"Bob","amount":"200.00","currency":"EUR"}"#

/// AM and a gateway in front of a bank, which behave well until a test says otherwise.
final class World: Sendable {
    struct Behaviour: Sendable {
        var gateway: (@Sendable (Exchange) async throws -> HTTPReply?)?
        var journey: (@Sendable (Exchange) async throws -> HTTPReply?)?
        var beforeDecision: (@Sendable () async throws -> Void)?
        var decision: (@Sendable (Exchange) throws -> HTTPReply)?
        /// Changes the statement about the request; `nil` leaves it out, as AM does.
        var statement: @Sendable (inout JSONObject) -> Void = { _ in }
        var states = true
        var resultToken = "SESS"
        var issued = 0
        var tokenType: JSONValue = "Bearer"
    }

    let clock = ManualClock()
    let store: MemorySecretStore
    let behaviour = Locked(Behaviour())
    let exchanges = Locked<[Exchange]>([])

    init() { store = MemorySecretStore(clock: clock) }

    func change(_ body: (inout Behaviour) -> Void) { behaviour.withLock { body(&$0) } }

    var transport: InMemoryTransport { InMemoryTransport { [self] in try await answer($0) } }

    func tokens(dpop: DPoPConfiguration = .off) throws -> TokenManager {
        var configuration = try TokenConfiguration(
            issuer: "\(am)/oauth2", clientID: "app", redirectURI: "app:/cb", scopes: ["accounts"])
        configuration.dpop = dpop
        return TokenManager(
            configuration: configuration,
            transport: transport, store: store, clock: clock, random: SeededRandom(seed: 1))
    }

    func client(
        _ access: ResourceAccess = .session, requiresBinding: Bool = false, signedIn: Bool = true,
        dpop: DPoPConfiguration = .off, policies: [AuthorizationPolicy] = [], of manager: TokenManager? = nil
    ) async throws -> AuthorizedClient {
        let own = try tokens(dpop: dpop)
        let tokens = manager ?? own
        if signedIn { try await tokens.install(Session(token: Secret("SESS"))) }
        return try AuthorizedClient(
            configuration: AuthorizationConfiguration(resources: [api: access], requiresBinding: requiresBinding),
            journeys: JourneyClient(
                configuration: try JourneyConfiguration(server: am), transport: transport, clock: clock),
            source: tokens, transport: transport, policies: policies, clock: clock, random: SeededRandom(seed: 2))
    }

    /// What the bank's origin was asked.
    var calls: [Exchange] { exchanges.withLock { $0 }.filter { $0.request.authority == "api.bank.example" } }

    /// What AM was asked to decide.
    var decisions: [Exchange] { exchanges.withLock { $0 }.filter { $0.url.contains("/policies?") } }

    /// What the authenticate endpoint was asked.
    var steps: [Exchange] { exchanges.withLock { $0 }.filter { $0.url.hasPrefix(authenticate) } }

    private func answer(_ exchange: Exchange) async throws -> HTTPReply {
        exchanges.withLock { $0.append(exchange) }
        let now = behaviour.withLock { $0 }
        switch exchange.url {
        case let url where url.hasPrefix(api): return try await now.gateway?(exchange) ?? gateway(exchange)
        case let url where url.hasPrefix("\(am)/json/realms/root/policies?"):
            try await now.beforeDecision?()
            return try now.decision?(exchange) ?? .json(404, [:])
        case let url where url.hasPrefix(authenticate):
            if let reply = try await now.journey?(exchange) { return reply }
            return exchange.text == "{}"
                ? .json(200, step(statement(now))) : .json(200, ["tokenId": .string(now.resultToken), "realm": "/"])
        case let url where url.hasSuffix("/.well-known/openid-configuration"):
            return .json(
                200,
                [
                    "issuer": .string("\(am)/oauth2"), "authorization_endpoint": .string("\(am)/oauth2/authorize"),
                    "token_endpoint": .string("\(am)/oauth2/access_token"),
                ])
        case let url where url.hasPrefix("\(am)/oauth2/authorize"):
            let state = URLText.query(of: url)?[all: "state"].first ?? ""
            return HTTPReply(
                HTTPResponse(status: .found, headerFields: [.location: "app:/cb?code=c&state=\(state)"]))
        default:
            let issued = behaviour.withLock {
                $0.issued += 1
                return $0.issued
            }
            return .json(
                200,
                [
                    "access_token": .string("access-\(issued)"), "refresh_token": .string("refresh-\(issued)"),
                    "expires_in": 600, "token_type": behaviour.withLock { $0.tokenType },
                ])
        }
    }

    private func gateway(_ exchange: Exchange) -> HTTPReply {
        exchange.url.contains("_txid=") ? .json(201, ["done": true]) : World.header(txid)
    }

    private func statement(_ now: Behaviour) -> JSONValue? {
        guard now.states, let call = calls.last else { return nil }
        var statement: JSONObject = JSONObject([
            .init(name: "_type", value: "AssentTransaction"), .init(name: "transactionId", value: .string(txid)),
            .init(name: "method", value: .string(call.request.method.rawValue)),
            .init(name: "resource", value: .string(call.url.replacing("bank.example/", with: "bank.example:443/"))),
            .init(name: "contentType", value: "application/json"),
            .init(name: "bodySHA256", value: .string(Base64URL.encode(SHA2.sha256(call.body)))),
            .init(name: "display", value: [["label": "Amount", "value": "200.00 EUR"]]),
            .init(name: "expiresAt", value: .integer(clock.epochSeconds + 180)),
        ])
        now.statement(&statement)
        return ["type": "MetadataCallback", "output": [["name": "data", "value": .object(statement)]]]
    }

    func step(_ statement: JSONValue?) -> JSONValue {
        let code: JSONValue = [
            "type": "TextInputCallback", "output": [["name": "prompt", "value": "Code"]],
            "input": [["name": "IDToken2", "value": ""]],
        ]
        let buttons: JSONValue = [
            "type": "ConfirmationCallback",
            "output": [["name": "options", "value": ["Approve", "Decline"]]],
            "input": [["name": "IDToken3", "value": 100]],
        ]
        return ["authId": "A1", "callbacks": .array((statement.map { [$0] } ?? []) + [code, buttons])]
    }

    static func header(_ id: String, server: String = am) -> HTTPReply {
        header(advices: ["TransactionConditionAdvice": [.string(id)]], server: server)
    }

    static func header(advices: JSONValue, server: String = am) -> HTTPReply {
        let encoded = Base64URL.encode(advices.serializedBytes())
        return HTTPReply(
            HTTPResponse(
                status: .unauthorized,
                headerFields: [.wwwAuthenticate: #"SSOADVICE realm="/",advices="\#(encoded)",am_uri="\#(server)""#]))
    }

    static func redirect(_ id: String, server: String = am) throws -> HTTPReply {
        let advice = try Advice(transactionID: id)
        let location = try advice.redirectLocation(server: server, goto: "\(api)/transfers", realm: "/")
        return HTTPReply(HTTPResponse(status: .temporaryRedirect, headerFields: [.location: location]))
    }
}

extension InMemoryTransport.Exchange {
    var url: String { request.url ?? "" }
    func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { request.headerFields[$0] } }
    func callback(_ index: Int) -> JSONValue? {
        (try? JSONValue.parse(body))?["callbacks"]?.array?[index]["input"]?.array?[0]["value"]
    }
}

func post(_ path: String = "/transfers", _ body: String = transfer) throws -> HTTPCall {
    HTTPCall(
        try HTTPRequest(.post, url: api + path, headerFields: [.contentType: "application/json"]), body: HTTPBody(body))
}

func get(_ path: String = "/accounts") throws -> HTTPCall { HTTPCall(try HTTPRequest(.get, url: api + path)) }

/// Answers what is asked, as a user would who agrees.
func agree(_ approval: inout Approval) -> StepAction {
    approval.step[TextInputCallback.self]?.text = "123456"
    approval.agree()
    return .next
}

extension AuthorizationError {
    /// An error to compare with.
    static func like(_ code: Code) -> AuthorizationError { AuthorizationError(code, "") }
}

extension AuthorizedClient {
    /// Returns when as many calls wait until they may ask the user.
    func waits(_ count: Int) async {
        while await coordinator.count < count { await Task.yield() }
    }
}
