import AssentCore
import AssentJourney
import AssentTesting
import Foundation
import HTTPTypes
import Testing

let fixtures = ProcessInfo.processInfo.environment["ASSENT_FIXTURES"]

func fixture(_ path: String) throws -> JSONValue {
    let folder = try #require(fixtures)
    return try JSONValue.parse(Array(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(path)"))))
}

let am = "https://am.example.com/am"
let authenticate = "https://am.example.com/am/json/realms/root/realms/alpha/authenticate"

/// Answers one request after another, and the last answer for ever.
func script(_ replies: [HTTPReply]) -> InMemoryTransport {
    let rest = Locked(replies)
    return InMemoryTransport { _ in rest.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] } }
}

func client(
    _ transport: InMemoryTransport, clock: any WallClock = ManualClock(), limits: JourneyLimits = JourneyLimits()
) throws -> JourneyClient {
    JourneyClient(
        configuration: try JourneyConfiguration(server: am, realm: "alpha", limits: limits), transport: transport,
        clock: clock)
}

func callback(_ type: String, _ outputs: KeyValuePairs<String, JSONValue> = [:], input: JSONValue? = nil) -> JSONValue {
    var callback: JSONObject = JSONObject([.init(name: "type", value: .string(type))])
    callback["output"] = .array(outputs.map { ["name": .string($0.key), "value": $0.value] })
    if let input { callback["input"] = [["name": "IDToken1", "value": input]] }
    return .object(callback)
}

func step(_ callbacks: [JSONValue], authId: String = "A1") -> HTTPReply {
    .json(200, ["authId": .string(authId), "callbacks": .array(callbacks)])
}

let name = callback("NameCallback", ["prompt": "User Name"], input: "")
let password = callback("PasswordCallback", ["prompt": "Password"], input: "")
let success = HTTPReply.json(200, ["tokenId": "T0ken", "successUrl": "/console", "realm": "/alpha"])

func firstStep(_ callbacks: [JSONValue]) async throws -> JourneyStep {
    let node = try await client(script([step(callbacks)])).start("Login")
    guard case .continue(let step) = node else { throw JourneyFailure(.malformedReply, "no step") }
    return step
}

extension JourneyNode {
    var failure: JourneyFailure? { if case .failure(let failure) = self { failure } else { nil } }
    var error: JourneyError? { if case .error(let error) = self { error } else { nil } }
    var session: Session? { if case .success(let session) = self { session } else { nil } }
    var step: JourneyStep? { if case .continue(let step) = self { step } else { nil } }
}

extension InMemoryTransport.Exchange {
    var url: String { request.url ?? "" }
    func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { request.headerFields[$0] } }
    var json: JSONValue? { try? JSONValue.parse(body) }
}
