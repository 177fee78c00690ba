import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What the probes of apps have found, over HTTP")
struct IntegrityReportRouteTests {
    private struct Door {
        let registration: RegistrationDoor
        var fixture: ServerFixture { registration.fixture }
        var url: String { fixture.oauth("reports") }

        static func run(_ body: (Door) async throws -> Void) async throws {
            try await ServerFixture.run(editing: { text in
                RegistrationDoor.file(text).replacing(
                    "    apps:\n", with: "    integrityReports: true\n    apps:\n", maxReplacements: 1)
            }) { fixture in
                try await body(Door(registration: try await RegistrationDoor(fixture)))
            }
        }

        static func report(_ changes: [String: JSONValue?] = [:]) -> [UInt8] {
            var report: JSONObject = [
                "v": 1, "app": "pay", "version": "3.2.0", "platform": "linux",
                "findings": [["probe": "debugger", "calls": "refused"], ["probe": "preload", "calls": "sent"]],
            ]
            for (name, value) in changes { report[name] = value }
            return JSONValue.object(report).serializedBytes()
        }

        func send(_ body: [UInt8], type: String = "application/json", proofs: [String] = []) async throws -> Answer {
            try await fixture.send(
                "POST", url, [("Content-Type", type)] + proofs.map { ("DPoP", $0) }, body: body)
        }

        /// A proof of an installation's key for a body; right, after a change to its claims.
        func proof(
            _ key: ProofKey, for body: [UInt8], method: String = "POST", url: String? = nil,
            claims change: (inout JSONObject) -> Void = { _ in }
        ) async throws -> String {
            try await registration.proof(method, url ?? self.url, by: key) { claims in
                claims["pe"] = .string(Base64URL.encode(SHA2.sha256(body)))
                change(&claims)
            }
        }

        /// The details of the records, oldest first.
        func told() async throws -> [JSONValue] {
            try await fixture.rows("SELECT detail FROM audit WHERE event = 'integrity.report' ORDER BY position").map {
                try JSONValue.parse(try $0.text("detail"))
            }
        }
    }

    @Test("The metadata says where; what anybody says is recorded as the client's word")
    func anybody() async throws {
        try await Door.run { door in
            let metadata = try await door.fixture.send("GET", door.fixture.oauth(".well-known/openid-configuration"))
            #expect(metadata.json["assent_reports_endpoint"]?.string == door.fixture.published(door.url))
            let answer = try await door.send(Door.report())
            #expect(answer.status == 204 && answer.bytes.isEmpty, "\(answer.text)")
            let told = try await door.told()
            #expect(told.count == 1)
            #expect(told.first?["said"] == "by the client" && told.first?["client"] == nil)
            #expect(told.first?["app"] == "pay" && told.first?["version"] == "3.2.0")
            let findings: JSONValue = [
                ["probe": "debugger", "calls": "refused"], ["probe": "preload", "calls": "sent"],
            ]
            #expect(told.first?["findings"] == findings)
        }
    }

    @Test("An installation proves its key, for this report, once")
    func installation() async throws {
        try await Door.run { door in
            let (instance, other) = (try await door.registration.instance(), try await door.registration.instance())
            let body = Door.report(["client": .string(instance.id)])
            let right = try await door.proof(instance.key, for: body)
            #expect(try await door.send(body, proofs: [right]).status == 204)
            #expect(try await door.told().map { $0["client"] } == [.string(instance.id)])
            let changed = Door.report(["client": .string(instance.id), "version": "9"])
            var attempts: [(String, [UInt8], [String])] = [
                ("the same proof", body, [right]), ("no proof", body, []),
                ("another key", body, [try await door.proof(other.key, for: body)]),
                ("another body", changed, [try await door.proof(instance.key, for: body)]),
                ("no claim", body, [try await door.proof(instance.key, for: body) { $0["pe"] = nil }]),
                ("another method", body, [try await door.proof(instance.key, for: body, method: "GET")]),
                (
                    "another address", body,
                    [
                        try await door.proof(instance.key, for: body, url: door.fixture.oauth("register"))
                    ]
                ),
            ]
            let elsewhere = Door.report(["client": .string(instance.id), "app": "bank-app"])
            attempts.append(("another app", elsewhere, [try await door.proof(instance.key, for: elsewhere)]))
            for (name, body, proofs) in attempts {
                let answer = try await door.send(body, proofs: proofs)
                #expect([400, 401].contains(answer.status), "\(name): \(answer.status) \(answer.text)")
            }
            #expect(try await door.registration.manage("DELETE", instance).status == 204)
            let ended = try await door.send(body, proofs: [try await door.proof(instance.key, for: body)])
            #expect(ended.error == "invalid_client")
            #expect(try await door.told().count == 1)
        }
    }

    @Test("What is not a report is refused, and nothing is recorded")
    func malformed() async throws {
        try await Door.run { door in
            let text = String(decoding: Door.report(), as: UTF8.self)
            let debugger: JSONValue = ["probe": "debugger", "calls": "sent"]
            var bodies: [[UInt8]] = [
                [], Array("{}".utf8), Array("[]".utf8), [0xFF], Array(text.dropLast().utf8),
                Array((text.dropLast() + #","v":1}"#).utf8), Door.report(["more": 1]), Door.report(["v": 2]),
                Door.report(["version": ""]), Door.report(["version": "a\u{1B}[2J"]), Door.report(["version": "é"]),
                Door.report(["version": .string(String(repeating: "1", count: 129))]), Door.report(["version": 3]),
                Door.report(["client": ""]), Door.report(["client": 1]), Door.report(["client": .null]),
            ]
            let findings: [JSONValue] = [
                .null, [], "debugger", ["debugger"], [debugger, debugger], [["probe": "debugger"]],
                [["probe": "network", "calls": "sent"]], [["probe": "debugger", "calls": "maybe"]],
                [["probe": "debugger", "calls": "sent", "text": "x"]],
            ]
            bodies += findings.map { Door.report(["findings": $0]) }
            for name in ["v", "app", "version", "platform", "findings"] { bodies.append(Door.report([name: nil])) }
            for body in bodies {
                let answer = try await door.send(body)
                #expect(answer.status == 400, "\(String(decoding: body, as: UTF8.self)): \(answer.status)")
            }
            let unknown = try await door.send(Door.report(["app": "other"]))
            #expect(unknown.error == "invalid_client")
            #expect(try await door.send(Door.report(), type: "text/plain").status == 415)
            let large = [UInt8](repeating: 0x20, count: IntegrityReport.sizeLimit + 1)
            #expect(try await door.send(large).status == 413)
            #expect(try await door.fixture.send("GET", door.url).status == 405)
            #expect(try await door.told().isEmpty)
            #expect(try await door.send(Door.report()).status == 204, "the control")
        }
    }

    @Test("An address, and an installation, may say so much in a minute")
    func limits() async throws {
        try await Door.run { door in
            for _ in 0..<IntegrityReports.perAddress { #expect(try await door.send(Door.report()).status == 204) }
            let refused = try await door.send(Door.report())
            #expect(refused.status == 429 && refused["retry-after"] != nil)
            #expect(try await door.told().count == Int(IntegrityReports.perAddress))
            door.fixture.clock.advance(by: 60)
            #expect(try await door.send(Door.report()).status == 204)
            // Of many addresses together.
            door.fixture.clock.advance(by: 60)
            let reports = IntegrityReports(door.fixture.server.context)
            let configuration = OAuthProviderConfiguration(realm: "/alpha", issuer: "https://a.example", clients: [])
            var known = configuration
            known.apps = ["pay": OAuthApp(OAuthClient(id: "pay", kind: .public, redirectURIs: [], scopes: []))]
            let proofs = SenderProofs(door.fixture.server.context)
            func take(_ reports: IntegrityReports) async throws {
                _ = try await reports.take(
                    Door.report(),
                    PresentedProof(fields: [], method: "POST", url: door.url, server: .authorizationServer),
                    by: proofs, at: nil, in: known)
            }
            for _ in 0..<IntegrityReports.perRealm { try await take(reports) }
            let error = await #expect(throws: EngineError.self) { try await take(reports) }
            #expect(error?.code == .tooManyRequests)
            // They do not silence an installation that proves its key.
            let instance = try await door.registration.instance()
            let body = Door.report(["client": .string(instance.id)])
            let proof = try await door.proof(instance.key, for: body)
            #expect(try await door.send(body, proofs: [proof]).status == 204)
            #expect(try await door.send(Door.report()).status == 429)
            // In a day there are no more than so many, since they are kept.
            door.fixture.clock.advance(by: 86_400)
            let few = IntegrityReports(door.fixture.server.context, perDay: 2)
            for _ in 0..<2 { try await take(few) }
            door.fixture.clock.advance(by: 60)
            let late = await #expect(throws: EngineError.self) { try await take(few) }
            #expect(late?.code == .tooManyRequests)
        }
    }

    @Test("A realm that takes no reports says so")
    func off() async throws {
        try await ServerFixture.run(editing: { RegistrationDoor.file($0) }) { fixture in
            let metadata = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration"))
            #expect(metadata.json["assent_reports_endpoint"] == nil)
            let answer = try await fixture.send(
                "POST", fixture.oauth("reports"), [("Content-Type", "application/json")], body: Door.report())
            #expect(answer.status == 404)
            #expect(try await fixture.rows("SELECT id FROM audit WHERE event = 'integrity.report'").isEmpty)
        }
    }
}
