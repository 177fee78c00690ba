import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What each kind of caller is answered at each door, over HTTP")
struct KindDoorTests {
    @Test("27 Every cell of kinds and doors is what the page says")
    func matrix() async throws {
        let rows = try Self.table()
        #expect(rows.map { $0[0] } == KindDoors.questions.map(\.row))
        try await ServerFixture.run(editing: Self.file) { fixture in
            let door = try await RegistrationDoor(fixture)
            for (row, asked) in zip(rows, KindDoors.questions) {
                #expect(row.count == KindColumn.allCases.count + 1)
                for (kind, expected) in zip(KindColumn.allCases, row.dropFirst()) {
                    let caller = try await KindCredentials.make(kind, at: door)
                    let answered = try await asked.question(KindDoors(door: door, caller: caller))
                    #expect(answered == expected, "\(asked.row), \(kind)")
                }
            }
        }
    }

    @Test("27 No kind is let in by a policy that names it where the route does not, nor by a route without a policy")
    func both() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            let door = try await RegistrationDoor(fixture)
            for kind in KindColumn.allCases where kind != .nobody {
                let caller = try await KindCredentials.make(kind, at: door)
                for (path, status) in [("/every/open", 200), ("/every/users", kind.session == nil ? 403 : 200)] {
                    let url = fixture.gateway(path)
                    for fields in try await caller.ways(fixture, "GET", url) {
                        #expect(try await fixture.send("GET", url, fields).status == status, "\(path), \(kind)")
                    }
                }
            }
            #expect(try await fixture.send("GET", fixture.gateway("/every/open")).status == 401)
        }
    }

    @Test("8 A token of a remembered user is refused at the user's routes and opens the one that names its kind")
    func implicit() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            let caller = try await KindCredentials.make(.implicit, at: try await RegistrationDoor(fixture))
            func get(_ path: String) async throws -> Answer {
                let url = fixture.gateway(path)
                return try await fixture.send("GET", url, try await caller.byToken(fixture, "GET", url))
            }
            let refused = try await get("/accounts")
            #expect(refused.status == 403 && refused.json["code"] == "token_kind")
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await get("/only-implicit/open").status == 200)
            #expect(fixture.upstream.requests.map { $0.values("X-Remote-User") } == [["ana"]])
        }
    }

    @Test("9 An installation's token is presented with its proof alone, and the service sees neither")
    func device() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            let caller = try await KindCredentials.make(.device, at: try await RegistrationDoor(fixture))
            let url = fixture.gateway("/only-device/open")
            let access = try #require(caller.access)
            #expect(try await fixture.send("GET", url, ServerFixture.bearer(access)).status == 401)
            #expect(try await fixture.send("GET", url, [("Authorization", "DPoP \(access)")]).status == 401)
            #expect(fixture.upstream.requests.isEmpty)
            let answer = try await fixture.send("GET", url, try await caller.byToken(fixture, "GET", url))
            #expect(answer.status == 200, "\(answer.text)")
            for name in ["Authorization", "DPoP", "X-Remote-User"] {
                #expect(fixture.upstream.requests.allSatisfy { $0.values(name).isEmpty }, "\(name)")
            }
        }
    }

    @Test("22 Token, look-up, kind, scope, policy, service: the first that fails decides, and no service hears of it")
    func order() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            func get(_ path: String, _ fields: [(String, String)]) async throws -> [String] {
                let answer = try await fixture.send("GET", fixture.gateway(path), fields)
                let error = try answer.tokenChallenge?["error"] ?? answer.json["code"]?.string
                return ["\(answer.status)", error ?? ""]
            }
            func bearer(_ scope: String) async throws -> (session: String, fields: [(String, String)]) {
                let session = try await fixture.session("ana")
                return (session, ServerFixture.bearer(try await fixture.tokens(session: session, scope: scope).access))
            }
            // Each is wrong in all that comes later as well: no policy lets anybody in at /strict/shut.
            let narrow = try await bearer("openid profile")
            let ended = try await bearer("openid profile")
            try await fixture.turn(ended.session, into: .implicit)
            let id = try #require(await Sessions(fixture.server.context).live(token: Secret(ended.session))).id
            _ = try await Sessions(fixture.server.context).end(
                id: id, recording: AuditRecord(.sessionEnd, .success, realm: "/alpha"))
            let implicit = try await bearer("openid profile")
            try await fixture.turn(implicit.session, into: .implicit)
            let wide = try await bearer("openid accounts")

            #expect(try await get("/strict/shut", []) == ["401", ""])
            #expect(try await get("/strict/shut", ServerFixture.bearer("a.b.c")) == ["401", "invalid_token"])
            #expect(try await get("/strict/shut", ended.fields) == ["401", "invalid_token"])
            #expect(try await get("/strict/shut", implicit.fields) == ["403", "token_kind"])
            #expect(try await get("/strict/shut", narrow.fields) == ["403", "insufficient_scope"])
            #expect(try await get("/strict/shut", wide.fields) == ["403", ""])
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await get("/strict/open", wide.fields) == ["200", ""])
            #expect(fixture.upstream.requests.map { $0.values("X-Remote-User") } == [["ana"]])

            // Without the look-up there is no service either.
            try await fixture.closeDatabase()
            #expect(try await get("/strict/open", wide.fields)[0] == "503")
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    /// The rows of docs/resources.md, without backquotes.
    private static func table() throws -> [[String]] {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "docs/resources.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let start = try #require(text.range(of: "<!-- table doors -->\n")).upperBound
        let end = try #require(text.range(of: "<!-- end of table doors -->")).lowerBound
        return text[start..<end].split(separator: "\n").dropFirst(2).map { line in
            line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces).replacing("`", with: "")
            }
        }
    }

    /// The fixture's file with the app, a route for each kind and one for all, and their policies.
    static func file(_ text: String) -> String {
        let upstream = text.firstMatch(of: /upstream: (http:\S+)/).map { String($0.1) } ?? ""
        func route(_ name: String, _ kinds: [String], scopes: [String] = []) -> String {
            """
                - name: \(name)
                  path: /\(name)
                  upstream: \(upstream)
                  realm: alpha
                  policySet: kinds
                  accepts: [\(kinds.joined(separator: ", "))]
            \(scopes.isEmpty ? "" : "      scopes: [\(scopes.joined(separator: ", "))]\n")
            """
        }
        let kinds = CallerKind.allCases.map(\.rawValue)
        let links = "\n        webLinks: [\"\(WebLinkDoor.target)\"]"
        let routes =
            kinds.map { route("only-\($0)", [$0]) }.joined() + route("every", kinds)
            + route("strict", ["user"], scopes: ["accounts"])
        let open = (kinds.map { "only-\($0)" } + ["every", "strict"]).map { "\"https://localhost:*/\($0)/open\"" }
        // Else no token of a remembered user of the app counts anywhere.
        let implicit = "\n        implicit: {scopes: [accounts]}"
        let types = "grantTypes: [authorization_code, refresh_token, client_credentials"
        return RegistrationDoor.file(text, RegistrationDoor.stateless + links + implicit)
            .replacing(types, with: types + ", \"\(OAuthClient.GrantType.jwtBearer.rawValue)\"")
            .replacing("  routes:\n", with: "  routes:\n" + routes)
            .replacing(
                "    policySets:\n      bank:\n", with: policies(open.joined(separator: ", ")), maxReplacements: 1)
    }

    private static func policies(_ open: String) -> String {
        let all =
            "{type: OR, subjects: [{type: App, apps: [pay]}, {type: Client, ids: [jobs]}, "
            + "{type: AuthenticatedUsers}]}"
        return """
                policySets:
                  kinds:
                    policies:
                      - name: open
                        resources: [\(open)]
                        actionValues: {GET: true}
                        subject: \(all)
                      - name: users
                        resources: ["https://localhost:*/every/users"]
                        actionValues: {GET: true}
                        subject: {type: AuthenticatedUsers}
                      - name: approved
                        resources: ["https://localhost:*/every/pay"]
                        actionValues: {POST: true}
                        subject: \(all)
                        condition: {type: Transaction, strategySpecifier: Nod, ttl: 180}
                        bind: [method, query, body]
                      - name: strong
                        resources: ["https://localhost:*/every/strong"]
                        actionValues: {POST: true}
                        subject: \(all)
                        condition: {type: AuthLevel, authLevel: 1}
                  bank:

            """
    }
}
