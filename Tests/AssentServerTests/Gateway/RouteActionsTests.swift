import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Foundation
import HTTPTypes
import Testing

@testable import AssentServer

@Suite("Actions of a gateway route")
struct RouteActionsTests {
    private static let body = #"{"amount":"200.00"}"#

    /// The usual file with an action `transfer`, a policy that speaks of it, and these entries at the first route.
    static func edited(_ text: String, _ entries: String?) -> String {
        let set = text.replacing(
            "      bank:\n        policies:\n",
            with: """
                      bank:
                        actions: [DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, transfer]
                        policies:
                          - name: wire
                            resources: ["https://localhost:*/wires", "https://localhost:*/wires?*"]
                            actionValues: {transfer: true}
                            subject: {type: AuthenticatedUsers}
                            condition: {type: Transaction, strategySpecifier: Nod, ttl: 180}
                            bind: [method, query, body]

                """, maxReplacements: 1)
        guard let entries else { return set }
        return set.replacing(
            "      home: /accounts\n", with: "      home: /accounts\n      actions: [\(entries)]\n", maxReplacements: 1)
    }

    private static let entry = "{methods: [POST, PUT], path: /wires, action: transfer}"

    @Test("What an action asks for is approved, bound to the method and spent once")
    func story() async throws {
        try await ServerFixture.run(editing: { Self.edited($0, Self.entry) }) { fixture in
            let session = try await fixture.session()
            let fields = ServerFixture.jsonFields + ServerFixture.session(session)
            let id = try await fixture.completedTransaction("/wires?a=1", body: Self.body, session: session)
            let target = fixture.gateway("/wires?a=1&_txid=" + id)
            #expect(try await fixture.send("PUT", target, fields, text: Self.body).status == 403)
            let refused = try await fixture.audit(id).filter { $0.outcome == .refused }.map(\.reason)
            #expect(refused == ["method"])
            #expect(try await fixture.send("POST", target, fields, text: Self.body).status == 201)
            #expect(try await fixture.send("POST", target, fields, text: Self.body).status == 409)
            #expect(fixture.upstream.requests.map(\.line) == ["POST /wires?a=1 HTTP/1.1"])
            // The policy says nothing of the methods that no entry names.
            for method in ["GET", "DELETE", "PATCH"] {
                #expect(try await fixture.send(method, fixture.gateway("/wires"), fields).status == 403)
            }
        }
    }

    /// An action and a policy about `/wires:go`, and a policy that lets everything else below `/wires` through.
    private static func wildcard(_ text: String) -> String {
        edited(text, "{methods: [POST], path: \"/wires:go\", action: transfer}")
            .replacing("localhost:*/wires\"", with: "localhost:*/wires:go\"")
            .replacing(
                "          - name: wire\n",
                with: """
                              - name: rest
                                resources: ["https://localhost:*/wires*"]
                                actionValues: {POST: true}
                                subject: {type: AuthenticatedUsers}
                              - name: wire

                    """)
    }

    @Test("An escape that is not needed leads past neither an action nor the policy that asks for an approval")
    func escaped() async throws {
        try await ServerFixture.run(editing: Self.wildcard) { fixture in
            let session = try await fixture.session()
            let fields = ServerFixture.jsonFields + ServerFixture.session(session)
            let other = try await fixture.send("POST", fixture.gateway("/wires:stop"), fields, text: Self.body)
            #expect(other.status == 201)
            for target in ["/wires:go", "/wires%3Ago", "/WIRES%3aGO"] {
                let reply = try await fixture.send("POST", fixture.gateway(target), fields, text: Self.body)
                #expect(reply.status == 401, "\(target)")
            }
            // What is approved is forwarded as it was written.
            let id = try await fixture.completedTransaction("/wires%3Ago", body: Self.body, session: session)
            let taken = try await fixture.send(
                "POST", fixture.gateway("/wires%3Ago?_txid=" + id), fields, text: Self.body)
            #expect(taken.status == 201)
            let lines = fixture.upstream.requests.map(\.line)
            #expect(lines == ["POST /wires:stop HTTP/1.1", "POST /wires%3Ago HTTP/1.1"])
        }
    }

    @Test("Without the entry nobody has an action of the policy")
    func control() async throws {
        try await ServerFixture.run(editing: { Self.edited($0, nil) }) { fixture in
            let session = ServerFixture.session(try await fixture.session())
            let reply = try await fixture.send(
                "POST", fixture.gateway("/wires"), ServerFixture.jsonFields + session, text: Self.body)
            #expect(reply.status == 403)
        }
    }

    @Test("Of several entries the first that is about a request says its action")
    func order() throws {
        let text = Self.edited(
            FixtureConfiguration.yaml(upstream: 9080, refusing: 9081),
            "{methods: [POST], path: /wires, action: transfer}, {methods: [GET, POST], path: /*, action: PUT}")
        let configuration = try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
        let actions = try #require(configuration.gateway?.routes.first?.actions)
        func action(_ target: String) throws -> String {
            actions.action(of: .post, try CanonicalResource("https://localhost" + target))
        }
        #expect(try action("/wires?x") == "transfer")
        #expect(try action("/wires/1") == "PUT")
        #expect(actions.action(of: .delete, try CanonicalResource("https://localhost/wires")) == "DELETE")
        #expect(actions.names(of: .get) == ["GET", "PUT"])
    }

    @Test("A trial of the file's policies decides on the action that the gateway would ask for")
    func trial() throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let file = directory + "/assent.yaml"
        let usual = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
            .replacing("publicURL: https://localhost:0\n  port: 0", with: "publicURL: https://localhost:8444")
        func result(_ entries: String?, _ url: String) throws -> PolicyTrial.Result {
            try Self.edited(usual, entries).write(toFile: file, atomically: true, encoding: .utf8)
            var trial = ConfiguredPolicyTrial()
            (trial.realm, trial.policySet, trial.caller.user) = ("alpha", "bank", "ana")
            let content = RequestContent(method: "POST", mediaType: "application/json", body: Array(Self.body.utf8))
            return try trial.run(file: file, url: CanonicalResource(url), content: content).result
        }
        #expect(try result(Self.entry, "https://localhost:8444/wires") == .transaction)
        #expect(try result(nil, "https://localhost:8444/wires") == .denied)
        #expect(try result(Self.entry, "https://localhost:9999/wires") == .denied)
    }

    @Test(
        "A mistake is named",
        arguments: [
            ("{methods: [], path: /wires, action: transfer}", "must name some of: DELETE, GET"),
            ("{methods: [post], path: /wires, action: transfer}", "must name some of"),
            ("{methods: [TRACE], path: /wires, action: transfer}", "must name some of"),
            ("{path: /wires, action: transfer}", "methods"), ("{methods: [POST], action: transfer}", "path"),
            ("{methods: [POST], path: /wires}", "action"),
            ("{methods: [POST], path: wires, action: transfer}", "a path without a query"),
            ("{methods: [POST], path: \"/wires?*\", action: transfer}", "a path without a query"),
            ("{methods: [POST], path: /a/../b, action: transfer}", "matches no path"),
            ("{methods: [POST], path: /wires, action: Transfer}", "knows no action Transfer; known: DELETE"),
            ("{methods: [POST], path: /wires, action: transfer, query: x}", "query"),
            ("\(entry), {methods: [POST], path: /WIRES, action: POST}", "an entry before it"), ("", "1 to 100"),
            ("wires", "actions"),
        ])
    func mistakes(_ entries: String, _ message: String) {
        let text = Self.edited(FixtureConfiguration.yaml(upstream: 9080, refusing: 9081), entries)
        let error = #expect(throws: ConfigurationError.self) {
            try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
        }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }

    @Test("A path outside the route, a public route, and a WebSocket whose handshake could not be approved are refused")
    func elsewhere() throws {
        let good = Self.edited(FixtureConfiguration.yaml(upstream: 9080, refusing: 9081), nil)
        for (find, replacement, message) in [
            (
                "      audience: [\"https://own.example\"]",
                "      audience: [\"https://own.example\"]\n      actions: [\(Self.entry)]",
                "matches nothing at or below the route's path, /owned"
            ),
            ("public: true}", "public: true, actions: [\(Self.entry)]}", "a public route has no actions"),
            (
                "      home: /accounts",
                "      websocket: true\n      actions: [{methods: [GET], path: /wires, action: transfer}]",
                "wire asks for a transaction for GET"
            ),
        ] {
            let text = good.replacing(find, with: replacement, maxReplacements: 1)
            #expect(text != good)
            let error = #expect(throws: ConfigurationError.self) {
                try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
            }
            #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
        }
    }
}
