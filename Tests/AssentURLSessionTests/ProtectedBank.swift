import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import AssentURLSession
import AssentVault
import Foundation
import HTTPTypes

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A bank whose payments want an approval, its AM, and a client for both. What is paid at `/payments` is refused until
/// its transaction comes with it.
struct ProtectedBank: Sendable {
    static let am = "https://am.example.com/am"
    static let origin = "https://api.bank.example"
    static let refusal = #"{"wanted":"approval"}"#

    let clock = ManualClock()
    /// What the bank answers where a test wants another answer.
    let answer = Locked<(@Sendable (InMemoryTransport.Exchange) async throws -> HTTPReply?)?>(nil)
    /// What the bank was asked, with the limits.
    let calls = Locked<[HTTPCall]>([])

    func answering(_ body: @escaping @Sendable (InMemoryTransport.Exchange) async throws -> HTTPReply?) -> Self {
        answer.withLock { $0 = body }
        return self
    }

    /// A client of the bank; with a `source` of another kind the bank gets an access token in the place of the session.
    func client(
        source: (any AccessTokenSource)? = nil, layers: [any HTTPMiddleware] = [],
        _ approve: @escaping AuthorizationPolicy.Handler = { $0.agreed() }
    ) async throws -> AuthorizedClient {
        let transport = BankTransport(bank: self)
        let tokens = TokenManager(
            configuration: try TokenConfiguration(
                issuer: "\(Self.am)/oauth2", clientID: "app", redirectURI: "app:/cb", scopes: ["accounts"]),
            transport: transport, store: MemorySecretStore(clock: clock), clock: clock, random: SeededRandom(seed: 1))
        try await tokens.install(Session(token: Secret("SESS")))
        return try AuthorizedClient(
            configuration: AuthorizationConfiguration(
                resources: [Self.origin: source == nil ? .session : .accessToken]),
            journeys: JourneyClient(
                configuration: try JourneyConfiguration(server: Self.am), transport: transport, clock: clock),
            source: source ?? tokens, transport: HTTPPipeline(transport, layers: layers),
            policies: [try AuthorizationPolicy("\(Self.origin)/", approve: approve)], clock: clock,
            random: SeededRandom(seed: 2))
    }

    fileprivate func reply(to exchange: InMemoryTransport.Exchange) async throws -> HTTPReply {
        let url = exchange.request.url ?? ""
        guard url.hasPrefix(Self.origin) else {
            return exchange.text == "{}"
                ? .json(200, Self.step) : .json(200, ["tokenId": "SESS", "realm": "/"])
        }
        if let reply = try await answer.withLock({ $0 })?(exchange) { return reply }
        guard exchange.request.path?.hasPrefix("/payments") == true, !url.contains("_txid=") else {
            return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(exchange.text))
        }
        let advice: JSONValue = ["TransactionConditionAdvice": ["7b8bfd4c-60fe-4271-928d-d09b94496f84"]]
        let encoded = Base64URL.encode(advice.serializedBytes())
        return HTTPReply(
            HTTPResponse(
                status: .unauthorized,
                headerFields: [
                    .wwwAuthenticate: #"SSOADVICE realm="/",advices="\#(encoded)",am_uri="\#(Self.am)""#
                ]), body: HTTPBody(Self.refusal))
    }

    private static let step: JSONValue = [
        "authId": "A1",
        "callbacks": [
            [
                "type": "ConfirmationCallback",
                "output": [["name": "options", "value": ["Approve", "Decline"]]],
                "input": [["name": "IDToken1", "value": 100]],
            ]
        ],
    ]
}

private struct BankTransport: HTTPTransport, BeginsAnywhere {
    let bank: ProtectedBank

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        if call.request.url?.hasPrefix(ProtectedBank.origin) == true { bank.calls.withLock { $0.append(call) } }
        return try await InMemoryTransport { try await bank.reply(to: $0) }.send(call)
    }
}

extension Approval {
    /// Answers as a user does who agrees.
    mutating func agreed() -> StepAction {
        agree()
        return .next
    }
}

/// The class of an app whose client a test chooses.
final class BankProtocol: AssentURLProtocol {
    private static let chosen = Locked<AuthorizedClient?>(nil)

    override class var client: AuthorizedClient? { chosen.withLock { $0 } }
    override class var limits: HTTPLimits { HTTPLimits(total: .seconds(20)) }
    override class var bodyLimit: Int { 1_000 }

    static func session(_ client: AuthorizedClient) -> URLSession {
        chosen.withLock { $0 = client }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [BankProtocol.self]
        return URLSession(configuration: configuration)
    }
}

/// A class of the same app that has no client.
final class OtherProtocol: AssentURLProtocol {}

/// A stream that gives nothing until its gate is opened.
final class SilentStream: InputStream {
    let gate = DispatchSemaphore(value: 0)

    override func open() {}
    override func close() {}
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        gate.wait()
        return 0
    }
}

func request(_ path: String, _ method: String = "GET", body: String? = nil) throws -> URLRequest {
    guard let url = URL(string: ProtectedBank.origin + path) else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.httpBody = body.map { Data($0.utf8) }
    return request
}
