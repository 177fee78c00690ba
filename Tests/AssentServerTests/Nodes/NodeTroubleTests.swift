#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import AssentTesting
import Foundation
import InMemoryLogging
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite(
    "Two nodes on one database, one of which has trouble",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct NodeTroubleTests {
    private static func pay(_ node: ServerFixture, _ id: String, session: String) async throws -> Answer {
        try await node.send(
            "POST", node.gateway("/nods?_txid=\(id)"), ServerFixture.jsonFields + ServerFixture.session(session),
            text: FixtureBody.transfer)
    }

    @Test("A node that has lost the database denies and says so; the other one serves; it comes back by itself")
    func away() async throws {
        try await TwoNodes.run { nodes in
            let session = try await nodes.first.session()
            let id = try await nodes.first.completedTransaction(session: session)
            nodes.proxy.cutAll(refusing: true)
            #expect(try await nodes.first.send("GET", nodes.first.root("/readyz")).status == 503)
            #expect(try await Self.pay(nodes.first, id, session: session).status == 503)
            #expect(nodes.forwarded.isEmpty)
            let ready = try await nodes.second.send("GET", nodes.second.root("/readyz"))
            #expect(ready.status == 200)
            #expect(try await Self.pay(nodes.second, id, session: session).status == 201)
            nodes.proxy.accept()
            while try await nodes.first.send("GET", nodes.first.root("/readyz")).status == 503 {}
            #expect(try await Self.pay(nodes.first, id, session: session).status == 409)
            #expect(nodes.forwarded.count == 1)
        }
    }

    @Test(
        "A connection that is lost under a payment's COMMIT: it is paid once", arguments: PostgreSQLProxy.Cut.allCases)
    func lostCommit(_ cut: PostgreSQLProxy.Cut) async throws {
        try await TwoNodes.run(configuring: TwoNodes.withoutLooks) { nodes in
            let session = try await nodes.first.session()
            for round in 1...3 {
                let id = try await nodes.second.completedTransaction(session: session)
                nodes.proxy.cutNextCommit(cut)
                #expect(try await Self.pay(nodes.first, id, session: session).status == 201)
                #expect(nodes.proxy.cuts == round)
                for node in nodes.both { #expect(try await Self.pay(node, id, session: session).status == 409) }
                #expect(nodes.forwarded.count == round)
            }
        }
    }

    /// What became of a lost commit is looked for no longer, and the next commit is the one that a test wants to lose.
    private static func losing(_ configuration: inout ServerConfiguration) {
        TwoNodes.withoutLooks(&configuration)
        configuration.postgreSQL?.outcomeLimit = 300
    }

    @Test(
        "While nobody can find out whether a payment's COMMIT took place, the answer is 503 and nothing is forwarded",
        arguments: [PostgreSQLProxy.Cut.before, .after])
    func unknown(_ cut: PostgreSQLProxy.Cut) async throws {
        try await TwoNodes.run(configuring: Self.losing) { nodes in
            let session = try await nodes.first.session()
            let id = try await nodes.second.completedTransaction(session: session)
            nodes.proxy.cutNextCommit(cut, refusing: true)
            let reply = try await Self.pay(nodes.first, id, session: session)
            #expect(reply.status == 503 && reply.json["code"] == "outcomeUnknown" && reply.json["forwarded"] == "no")
            #expect(nodes.forwarded.isEmpty)
            nodes.proxy.accept()
            // What took place was taken without being forwarded, and is not taken again.
            let later = try await Self.pay(nodes.second, id, session: session)
            #expect(later.status == (cut == .after ? 409 : 201))
            #expect(nodes.forwarded.count == (cut == .after ? 0 : 1))
        }
    }

    @Test("A sign-in, a revocation and a lock say that nobody knows, and not that nothing has changed")
    func unknownElsewhere() async throws {
        try await TwoNodes.run(configuring: Self.losing) { nodes in
            let node = nodes.first
            _ = try await node.server.context.database.run(
                SQLStatement("UPDATE users SET roles = 'admin' WHERE username = 'ana' AND realm = '/alpha'"))
            let session = try await node.session()
            let token = try await node.tokens(session: session).refresh
            func start(_ node: ServerFixture) async throws -> Answer {
                try await node.send("POST", node.json("authenticate"), ServerFixture.jsonFields)
            }
            func unknown(_ request: () async throws -> Answer) async throws -> Answer {
                // A connection that is new to the node is tried by a commit of its own, which is not the one to cut.
                while try await start(node).status == 503 {}
                nodes.proxy.cutNextCommit(.after, refusing: true)
                let reply = try await request()
                nodes.proxy.accept()
                #expect(reply.status == 503 && reply.text.contains("It is not known whether this was done."))
                return reply
            }
            // That a journey was begun is counted without waiting; what is typed is not.
            let typed = ServerFixture.filled(try await start(node).json) { type in
                ["NameCallback": "ana", "PasswordCallback": "wrong"][type].map { .string($0) }
            }
            let signedIn = try await unknown {
                try await node.send(
                    "POST", node.json("authenticate"), ServerFixture.jsonFields, text: typed.serialized())
            }
            #expect(signedIn.json["detail"]?["reason"] == "outcomeUnknown")
            let revoked = try await unknown {
                try await node.send(
                    "POST", node.oauth("token/revoke"), [("Content-Type", "application/x-www-form-urlencoded")],
                    text: ServerFixture.query([("token", token), ("client_id", "bank-app")]))
            }
            #expect(revoked.error == "temporarily_unavailable")
            let locked = try await unknown {
                try await node.send(
                    "POST", node.json("administration?_action=setActive"),
                    ServerFixture.jsonFields + ServerFixture.session(session),
                    text: #"{"username":"ben","active":false}"#)
            }
            #expect(locked.json["detail"]?["reason"] == "outcomeUnknown")
            // It was done; nobody knew.
            #expect(try await nodes.second.refresh(token).error == "invalid_grant")
            let ben = try await nodes.second.rows(
                "SELECT active FROM users WHERE username = 'ben' AND realm = '/alpha'")
            #expect(try ben.first?.integer("active") == 0)
        }
    }

    @Test("Nodes whose policies differ say so in the log, and one does not spend what the other's policy approved")
    func policies() async throws {
        try await TwoNodes.run(editing: {
            $0.replacing("display: [{label: Amount,", with: "display: [{label: Sum,").replacing(
                "policies:\n              - name: read", with: "policies:\n              - name: look")
        }) { nodes in
            let session = try await nodes.first.session()
            while nodes.second.clock.sleeperCount == 0 { await Task.yield() }
            #expect(nodes.second.log.entries.contains { "\($0.message)".contains("other policies") })
            let text = #"{"to":"Bob","amount":"1.00","currency":"EUR"}"#
            let fields = ServerFixture.jsonFields + ServerFixture.session(session)
            let refused = try await nodes.first.send("POST", nodes.first.gateway("/transfers"), fields, text: text)
            let id = try ServerFixture.transactionID(refused)
            #expect(try await nodes.first.approve(id, session: session).status == 200)
            let target = "/transfers?_txid=\(id)"
            #expect(try await nodes.second.send("POST", nodes.second.gateway(target), fields, text: text).status == 403)
            #expect(try await nodes.first.send("POST", nodes.first.gateway(target), fields, text: text).status == 201)
        }
    }

    @Test("Four nodes that start at once on an empty database agree on tables, users, keys and the first token")
    func firstStart() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let server = try await PostgreSQLServer.shared()
        let database = try await offPool { try server.makeDatabase() }
        let node = FixtureNode(database: database, keyFile: directory + "/key")
        _ = try node.adapted("")
        let nodes = try await withThrowingTaskGroup(of: ServerFixture.self) { group in
            for _ in 0..<4 { group.addTask { try await ServerFixture(node: node) } }
            return try await group.reduce(into: [ServerFixture]()) { $0.append($1) }
        }
        let made = nodes.map(\.endpoints.accounts.count).sorted()
        #expect(made == [0, 0, 0, 4])
        let tokens = try nodes.map { try String(contentsOfFile: #require($0.endpoints.bootstrapFile), encoding: .utf8) }
        #expect(Set(tokens).count == 1)
        let first = nodes[0]
        #expect(try await first.count("users") == 4)
        var keys: [JSONValue?] = []
        for node in nodes {
            keys.append(try await node.send("GET", node.oauth("connect/jwk_uri")).json["keys"])
        }
        #expect(keys.allSatisfy { $0 == keys[0] })
        #expect(try await first.rows("SELECT id FROM audit WHERE node = ''").isEmpty)
        for node in nodes { await node.stop() }
    }

    @Test("A request with a session costs one round trip to the database, one that spends a transaction seven more")
    func roundTrips() async throws {
        try await TwoNodes.run(configuring: TwoNodes.countingTrips) { nodes in
            let session = try await nodes.first.session()
            let fields = ServerFixture.jsonFields + ServerFixture.session(session)
            let accounts = nodes.first.gateway("/accounts")
            let ids = [
                try await nodes.first.completedTransaction(session: session),
                try await nodes.first.completedTransaction(session: session),
            ]
            // The connection has then seen each statement once.
            #expect(try await nodes.first.send("GET", accounts, fields).status == 200)
            #expect(try await Self.pay(nodes.first, ids[0], session: session).status == 201)
            var trips = [nodes.proxy.roundTrips]
            #expect(try await nodes.first.send("GET", accounts, fields).status == 200)
            trips.append(nodes.proxy.roundTrips)
            #expect(try await Self.pay(nodes.first, ids[1], session: session).status == 201)
            trips.append(nodes.proxy.roundTrips)
            #expect(trips[1] - trips[0] == 1)
            // The take, the note that it is forwarded, and what became of it: each is a transaction on the disk.
            #expect(trips[2] - trips[1] == 8)
        }
    }

    @Test("One node cleans up; when it is gone, another one does")
    func housekeeping() async throws {
        try await TwoNodes.run { nodes in
            let (first, second) = (nodes.first.server.context.node, nodes.second.server.context.node)
            var cleaners: [String?] = []
            for node in [nodes.first, nodes.second, nodes.second, nodes.second] {
                await pass(node)
                cleaners.append(try await cleaner(nodes))
            }
            #expect(cleaners == [first, first, first, second])
        }
    }

    /// Lets five minutes pass on a node, and waits until it has cleaned up.
    private func pass(_ node: ServerFixture) async {
        while node.clock.sleeperCount == 0 { await Task.yield() }
        node.clock.advance(by: 301)
        while node.clock.sleeperCount == 0 { await Task.yield() }
        while node.server.isCleaning.withLock({ $0 }) { await Task.yield() }
    }

    private func cleaner(_ nodes: TwoNodes) async throws -> String? {
        try await nodes.first.rows("SELECT holder FROM leases WHERE name = 'housekeeping'").first?.text("holder")
    }
}
#endif
