#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import SigningTesting
import Testing

@testable import AssentServer

/// The issuer of transaction signing of ``RacedNodes``, for the devices that call it.
final class NodesDoor: TestIssuer {
    /// Which node the calls of a task go to.
    @TaskLocal static var index = 0

    let name = "https://localhost:8443/am/signing/realms/root/realms/alpha"
    private let nodes: RacedNodes

    init(_ nodes: RacedNodes) { self.nodes = nodes }

    func configuration() async throws -> (bytes: [UInt8], nonce: String) {
        let reply = try await send("GET", "configuration")
        return (reply.bytes, try #require(reply["TSP-Nonce"]))
    }

    func send(_ path: String, proof: String?, body: String) async throws -> String {
        let fields = [("Content-Type", "application/jose")] + (proof.map { [("TSP-Proof", $0)] } ?? [])
        let reply = try await send("POST", "device/" + path, fields, text: body)
        guard reply.status == 200 else { throw TestRefusal(reply.json["code"]?.string ?? "status \(reply.status)") }
        return reply.text
    }

    /// What the page of a signed-in user asks.
    func ask(_ path: String, _ body: JSONValue, session: String) async throws -> Answer {
        try await send(
            "POST", path, ServerFixture.session(session) + [("Content-Type", "application/json")],
            text: body.serialized())
    }

    private func send(
        _ method: String, _ path: String, _ fields: [(String, String)] = [], text: String? = nil
    ) async throws -> Answer {
        let node = nodes.all[Self.index % 2]
        return try await node.send(
            method, node.server + "/signing/realms/root/realms/alpha/" + path, fields, text: text)
    }
}
#endif
