#if os(Linux)
import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

/// Between a Python device, whose user typed the code, and `assent serve` stands a relay that has keys of its own,
/// speaks for the server to the device and for the device to the server, and copies what it can.
@Suite(
    "A relay at enrolment, with each field of each message replaced", .enabled(if: PythonPeer.mustRun),
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct SigningRelayTests {
    @Test("Nothing that it replaces ends active; the old fingerprint, and a user who is told the digits, do")
    func everyField() async throws {
        try await SigningNodes.run { world in
            let report = try await Self.report(world)
            let (broken, deaf) = (try #require(report["broken"]?.array), try #require(report["deaf"]?.array))
            #expect(broken.isEmpty, "an active container: \(broken)")
            // A refusal that had nothing to do with the field would prove nothing.
            #expect(deaf.isEmpty, "\(deaf.prefix(5))")
            #expect(try #require(report["fields"]?.integer) >= (Soak.isOn ? 400 : 60))
            #expect(report["outcomes"]?["digits differ"]?.integer ?? 0 > 10)
            #expect(report["outcomes"]?["refused"]?.integer ?? 0 > 30)
            let messages = (report["messages"]?.array ?? []).compactMap(\.string)
            for typ in ["start", "offer", "eval", "nonce", "proof", "pop", "enrol", "enrolled", "status"] {
                #expect(messages.contains("tsp-\(typ)+jwt") && messages.contains("header of tsp-\(typ)+jwt"))
            }
            let bodies = ["evaluate", "commit", "complete", "confirm"].map { "body of provision/\($0)" }
            #expect(Set(bodies + ["configuration"]).isSubset(of: messages))
            // Without the code's help: the identity key of a scanned invite lets nothing through.
            #expect(report["scanned"]?.integer ?? 0 > (Soak.isOn ? 200 : 60) && report["accepted"] == [], "\(report)")

            // The controls. The relay itself works, and only the digits stop it.
            for outcome in try #require(report["nothing"]?.array) {
                #expect(outcome.string?.hasPrefix("digits differ") == true, "\(outcome)")
            }
            for outcome in try #require(report["told"]?.array) { #expect(outcome == "BROKEN: ACTIVE") }
            #expect(report["weak"] == "BROKEN: ACTIVE")
        }
    }

    private static func report(_ world: SigningNodes) async throws -> JSONValue {
        let place = try await world.place()
        let relay = try await offPool {
            try FinishedProcess.run(
                "/usr/bin/timeout",
                [
                    "\(Patience.seconds)", PythonPeer.interpreter, "tsp", "relay", "--elsewhere", "--modes", "assisted",
                    "--orders", Soak.isOn ? "2" : "1", "--every", Soak.isOn ? "1" : "3",
                ], directory: PythonPeer.folder, input: place.serializedBytes())
        }
        try #require(relay.status == 0, "\(relay.complaints)")
        return try JSONValue.parse(relay.text)
    }
}
#endif
