import AssentCore
import AssentStore
import AssentTesting
import AsyncHTTPClient
import Foundation
import TestSupport
import Testing

@testable import AssentServer

@Suite("assent serve as a process")
struct ProcessTests {
    @Test("The issuer that it prints is the one that programs discover")
    func issuer() async throws {
        try await ProcessWorld.run { world in
            let serve = try await world.start()
            let issuer = try #require(serve.issuers.first)
            #expect(serve.issuers == ["\(serve.server)/oauth2/realms/root/realms/alpha"])
            let found = try await serve.send("GET", issuer + "/.well-known/openid-configuration")
            #expect(found.json["issuer"]?.string == issuer)
        }
    }

    @Test("SIGTERM under load: exit status 0, everything answered is recorded, nothing is half done")
    func terminate() async throws {
        try await ProcessWorld.run { world in
            let serve = try await world.start()
            let payments = try await Payments.begin([serve], workers: 6)
            await payments.waitUntilPaid(12)
            // What 'timeout' and some supervisors do: to the process, and to its group.
            for _ in 0..<2 { serve.process.signal(SIGTERM) }
            #expect(await serve.process.exit() == 0, "\(serve.process.errors)")
            let attempts = await payments.end()
            let ledger = try await world.ledger()
            let rows = try await world.transactions()
            for attempt in attempts where attempt.status == 201 {
                #expect(rows[attempt.transaction] == "TAKEN answered 201")
            }
            for attempt in attempts { #expect(attempt.status == nil || attempt.status == 201) }
            let taken = rows.filter { $0.value.hasPrefix("TAKEN") }
            #expect(taken.values.allSatisfy { $0 == "TAKEN answered 201" })
            #expect(Set(taken.keys) == Set(ledger.map(\.key)))
            // No reply was lost either: what was paid was told.
            #expect(Set(taken.keys) == Set(attempts.filter { $0.status == 201 }.map(\.transaction)))
            #expect(ledger.count >= 12)
        }
    }

    @Test("SIGTERM while passwords are guessed without a pause is noticed before many more are checked")
    func guessed() async throws {
        try await ProcessWorld.run { world in
            try world.edit { $0.replacing("passwordCost: 1024", with: "passwordCost: 16384") }
            let serve = try await world.start()
            let session = try await serve.signIn("ana", password: #require(serve.password))
            let guesses = Watched(0)
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        // They go on for as long as there is a server, each time with a new name: for one that has had
                        // all its attempts, nothing is computed.
                        var count = 0
                        while let reply = try? await serve.guess("u\(number).\(count)"), reply.status == 401 {
                            count += 1
                            guesses.update { $0 += 1 }
                        }
                    }
                }
                await guesses.wait { $0 >= 12 }
                let reply = try? await serve.transfer(to: "Bob", session: session)
                #expect(reply?.status == 401, "\(reply?.text ?? "no reply")")
                serve.process.signal(SIGTERM)
                // Asked behind the signal: this thread may have stood still before it for as long as many checks take.
                let before = guesses.value
                #expect(await serve.process.exit() == 0, "\(serve.process.errors)")
                await group.waitForAll()
                // Checks are counted and not seconds, which a busy machine stretches for both. Each client may finish
                // one; a stop that had to wait for its turn among the checks would see far more.
                #expect(guesses.value - before <= 50)
            }
        }
    }

    @Test("Killed while transfers run: afterwards every outcome is known and nothing is paid twice")
    func killed() async throws {
        try await ProcessWorld.run(restarts: true) { world in
            let first = try await world.start()
            let payments = try await Payments.begin([first], workers: 6)
            await payments.waitUntilPaid(12)
            first.process.signal(SIGKILL)
            #expect(await first.process.exit() == -SIGKILL)
            let attempts = await payments.end()
            let second = try await world.start()
            var known = 0
            for attempt in attempts {
                // Who got no reply asks again, with the same transaction.
                let reply = try await second.transfer(
                    to: attempt.payee, session: attempt.session, transaction: attempt.transaction)
                switch reply.status {
                case 201: #expect(attempt.status == nil)
                case 409:
                    let state = try #require(reply.json["outcome"]?["state"]?.string)
                    if attempt.status == 201 { #expect(state == "answered") }
                    known += 1
                default: Issue.record("\(reply.status) \(reply.text)")
                }
            }
            #expect(known >= 12)
            second.process.signal(SIGTERM)
            #expect(await second.process.exit() == 0)
            let ledger = try await world.ledger()
            #expect(Set(ledger.map(\.payee)).count == ledger.count)
            let rows = try await world.transactions()
            for entry in ledger { #expect(rows[entry.key]?.hasPrefix("TAKEN") == true) }
        }
    }

    @Test("The second signal cuts a stop short, with exit status 1; what was forwarded is on record as unknown")
    func twoSignals() async throws {
        let upstream = try await TestUpstream.start()
        upstream.hold()
        try await ProcessWorld.run(upstream: upstream.port) { world in
            let serve = try await world.start()
            let session = try await serve.signIn("ana", password: #require(serve.password))
            let refused = try await serve.transfer(to: "Bob", session: session)
            let id = try ServerFixture.transactionID(refused)
            #expect(try await serve.approve(id, session: session).status == 200)
            async let reply = serve.transfer(to: "Bob", session: session, transaction: id)
            await upstream.waitUntilHeld()
            serve.process.signal(SIGTERM)
            let port = try #require(URLComponents(string: serve.gateway ?? "")?.port)
            while !Task.isCancelled, let connection = try? await RawConnection.open(port: port, withTLS: false) {
                await connection.close()
            }
            // One that comes within a second of the first counts as the same.
            while serve.process.isRunning, !Task.isCancelled {
                serve.process.signal(SIGINT)
                await Task.yield()
            }
            #expect(await serve.process.exit() == 1)
            await serve.process.waitUntilRead()
            #expect(serve.process.errors.contains("second signal"))
            if let reply = try? await reply { #expect(reply.status == 504) }
            #expect(try await world.transactions()[id] == "TAKEN unknown")
            #expect(upstream.requests.count == 1)
        }
        await upstream.stop()
    }

    @Test("An operator signs in, becomes administrator and rotates the keys, with the commands of the manual")
    func commands() async throws {
        try await ProcessWorld.run { world in
            let serve = try await world.start()
            let passwordFile = world.directory + "/password"
            try Data((#require(serve.password) + "\n").utf8).write(to: URL(fileURLWithPath: passwordFile))
            func keyIDs() async throws -> Set<String> {
                let reply = try await serve.send(
                    "GET", serve.server + "/oauth2/realms/root/realms/alpha/connect/jwk_uri")
                return Set((reply.json["keys"]?.array ?? []).compactMap { $0["kid"]?.string })
            }
            let first = try await keyIDs()
            #expect(first.count == 2)
            let login = try await world.assent(
                ["login", "--config", world.directory + "/data/client.yaml", "--username", "ana"]
                    + ["--password-file", passwordFile])
            #expect(login.status == 0, "\(login.errors)")
            #expect(try await world.assent(["admin", "keys", "rotate"]).status == 2)
            #expect(try await keyIDs() == first)
            let token = world.directory + "/data/bootstrap-token"
            let bootstrap = try await world.assent(["admin", "bootstrap", "--token-file", token])
            #expect(bootstrap.status == 0, "\(bootstrap.errors)")
            let rotated = try await world.assent(["admin", "keys", "rotate"])
            #expect(rotated.status == 0, "\(rotated.errors)")
            let second = try await keyIDs()
            #expect(second.isSuperset(of: first) && second.count == 4)
            let discard = ["admin", "keys", "rotate", "--purpose", "id_token", "--discard-old"]
            #expect(try await world.assent(discard).status == 0)
            let third = try await keyIDs()
            #expect(third.count == 3 && third.intersection(first).count == 1)
            #expect(try await world.assent(["admin", "keys", "rotate", "--purpose", "all"]).status == 64)
            #expect(try await keyIDs() == third)
            let audit = try await world.assent(["admin", "audit", "--limit", "50"])
            let records = try audit.lines.map { try JSONValue.parse(Array($0.utf8)) }
            let outcomes = records.filter { $0["event"] == "admin.keys" }.compactMap { $0["outcome"]?.string }
            #expect(outcomes.sorted() == ["refused", "success", "success", "success"])
            let times = try records.map {
                try Date($0["at"]?.string ?? "", strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
            }
            #expect(times.allSatisfy { abs($0.timeIntervalSinceNow) < 600 } && times == times.sorted(by: >))
        }
    }
}

/// A directory with a server's configuration, and the example bank behind it.
final class ProcessWorld: Sendable {
    let directory: String
    private let bank: WatchedProcess?
    private let upstream: Int
    /// What puts the server on PostgreSQL; `nil` on SQLite.
    private let node: FixtureNode?
    /// The server's and its gateway's, if one server follows another there.
    private let ports: [ReservedPort]
    private let client = ServeProcess.makeClient()
    private let processes = Locked<[WatchedProcess]>([])

    /// Runs `body` beside the example bank, or with another service, and ends all processes. The server's database is
    /// that of the run of the tests, or SQLite's in any case for what belongs to its file.
    ///
    /// With `restarts`, each server listens where the one before it did: transactions are bound to the gateway's URL.
    /// Nobody else gets these ports while no server listens on them.
    static func run(
        upstream: Int? = nil, onSQLite: Bool = false, restarts: Bool = false,
        _ body: (ProcessWorld) async throws -> Void
    ) async throws {
        let world = try await ProcessWorld(upstream: upstream, onSQLite: onSQLite, restarts: restarts)
        do {
            try await body(world)
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private init(upstream: Int?, onSQLite: Bool, restarts: Bool) async throws {
        directory = NSTemporaryDirectory() + "/assent-process-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        node = try await onSQLite ? nil : FixtureNode.alone(in: directory)
        ports = try restarts ? [ReservedPort(), ReservedPort()] : []
        if let upstream {
            self.upstream = upstream
            bank = nil
        } else {
            let bank = try WatchedProcess.start(
                [try WatchedProcess.product("AssentExampleBank")],
                environment: ["BANK_DATABASE": directory + "/bank.sqlite", "BANK_PORT": "0", "BANK_OWNERS": "ana"])
            let port = await bank.nextLine()?.split(separator: ":").last.flatMap { Int($0) }
            self.upstream = try #require(port, "the bank did not start: \(bank.errors)")
            self.bank = bank
        }
        try write(
            adapted(
                ServeProcess.yaml(
                    upstream: self.upstream, serverPort: ports.first?.port ?? 0, gatewayPort: ports.last?.port ?? 0)))
    }

    func start(prefix: [String] = [], options: [String] = []) async throws -> ServeProcess {
        let serve = try await ServeProcess.start(
            directory: directory, prefix: prefix, options: options, client: client)
        processes.withLock { $0.append(serve.process) }
        return serve
    }

    /// Runs a command of the client, with a place of its own for what it keeps.
    func assent(_ arguments: [String]) async throws -> (status: Int32, lines: [String], errors: String) {
        let process = try WatchedProcess.start(
            [try WatchedProcess.product("assent")] + arguments,
            environment: ServeProcess.patience.merging(
                ["XDG_CONFIG_HOME": directory + "/config", "XDG_STATE_HOME": directory + "/state"]
            ) { $1 })
        processes.withLock { $0.append(process) }
        var lines: [String] = []
        while let line = await process.nextLine() { lines.append(line) }
        let status = await process.exit()
        await process.waitUntilRead()
        return (status, lines, process.errors)
    }

    /// Changes the configuration of the next server.
    func edit(_ change: (String) -> String) throws {
        try write(change(String(contentsOfFile: directory + "/assent.yaml", encoding: .utf8)))
    }

    /// Runs `body` with the server's database, opened by this process.
    func withDatabase<Value: Sendable>(_ body: (any SQLDatabase) async throws -> Value) async throws -> Value {
        let location: DatabaseLocation =
            node.map { .postgresql($0.database) } ?? .sqlite(path: directory + "/data/assent.sqlite")
        let database = try await location.open(clock: SystemClock())
        let value = try await body(database)
        try await database.close()
        return value
    }

    /// State, outcome and status of every transaction. Only when the server has ended.
    func transactions() async throws -> [String: String] {
        let rows = try await withDatabase {
            try await $0.run(.read("SELECT id, state, outcome, upstream_status FROM transactions"))
        }
        return try Dictionary(
            uniqueKeysWithValues: rows.map { row in
                let status = try row.optionalInteger("upstream_status").map { "\($0)" }
                let parts = [try row.text("state"), try row.optionalText("outcome"), status]
                return (try row.text("id"), parts.compactMap(\.self).joined(separator: " "))
            })
    }

    /// What the bank has booked. Ends the bank.
    func ledger() async throws -> [(key: String, payee: String)] {
        await bank?.stop()
        let database = try await DatabaseLocation.sqlite(path: directory + "/bank.sqlite")
            .open(schema: Schema([]), clock: SystemClock())
        let rows = try await database.run(.read("SELECT idempotency_key, payee FROM transfers"))
        try await database.close()
        return try rows.map { (try $0.text("idempotency_key"), try $0.text("payee")) }
    }

    private func adapted(_ yaml: String) throws -> String { try node?.adapted(yaml) ?? yaml }

    private func write(_ yaml: String) throws {
        try Data(yaml.utf8).write(to: URL(fileURLWithPath: directory + "/assent.yaml"))
    }

    private func stop() async {
        try? await client.shutdown()
        for process in processes.withLock({ $0 }) { await process.stop() }
        await bank?.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }
}
