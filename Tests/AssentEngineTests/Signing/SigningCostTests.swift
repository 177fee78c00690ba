import AssentCore
import AssentSigningProtocol
import AssentStore
import SigningTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// Says that nodes share it, and counts how often it is asked: each time is a round trip or two where they do.
private final class SharedDatabase: SQLDatabase {
    private let database: any SQLDatabase
    private let count = Locked(0)

    init(_ database: any SQLDatabase) { self.database = database }

    /// How often it was asked since this was asked last.
    func taken() -> Int {
        count.withLock { count in
            defer { count = 0 }
            return count
        }
    }

    var isShared: Bool { true }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        count.withLock { $0 += 1 }
        return try await database.run(statement)
    }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        count.withLock { $0 += 1 }
        return try await database.run(statements)
    }

    func checkHealth() async throws { try await database.checkHealth() }

    func close() async throws {}
}

@Suite("What calls of a device cost the database")
struct SigningCostTests {
    /// A device with a PIN, which calls nodes on the world's database.
    private struct Caller {
        let world: SigningWorld
        let device: TestDevice
        let container: TestDevice.Enrolled
        let pin: TestPIN

        init() async throws { (world, device, container, pin) = try await SigningWorld.withEnrolledPIN() }

        func node(on database: any SQLDatabase) throws -> SigningProvider {
            SigningProvider(
                try TransactionFixture.context(database, clock: world.base.clock), settings: world.provider.settings)
        }

        func send(_ path: String, _ body: some MessagePart, to node: SigningProvider) async throws {
            let sealed = try await device.sealed(body.encoded(), sender: container.did.text)
            let proof = try await device.proof(container.did, path: path, body: sealed)
            let call = try #require(DeviceCall(rawValue: path))
            _ = try await node.door.answer(call, proof: proof, body: Array(sealed.utf8), address: "192.0.2.1")
        }
    }

    @Test("Who calls by which nonce, and how a container stands, are each read at once where nodes share a database")
    func reads() async throws {
        let caller = try await Caller()
        let pin = caller.pin
        let asked = SharedDatabase(caller.world.base.database)
        let node = try caller.node(on: asked)
        let kept = pin.kept.withLock { $0 }
        let body = pin.body(kept, next: kept.r, element: kept.publicKey)
        // The first one reads the issuer's keys.
        try await caller.send("slots/unlock", body, to: node)
        _ = asked.taken()
        try await caller.send("slots/unlock", body, to: node)
        // Who calls by which nonce, how many calls there were; and what is counted.
        #expect(asked.taken() == 3)
        pin.kept.withLock { $0.r = kept.r }
        let opened = try #require(try await pin.unlock("2580"))
        let confirmation = try await pin.confirmation(opened)
        try await caller.send("slots/confirm", confirmation, to: node)
        // The same two, what is written, and how the container stands. The slot's key comes with who calls.
        #expect(asked.taken() == 4)
    }

    @Test("A login asks a shared database for the installation, for all that the login is judged by, and to spend it")
    func login() async throws {
        let world = try await LoginWorld()
        let asked = SharedDatabase(world.database)
        let node = try LoginWorld.node(asked, of: world.signing)
        // The first one reads the keys that sign tokens.
        _ = try await world.logIn(try await world.typed(), on: node)
        for parts in [try await world.typed(), try world.implicit()] {
            _ = asked.taken()
            _ = try await world.logIn(parts, on: node)
            #expect(asked.taken() == 3)
        }
    }

    @Test("An unlock is one statement besides its audit record; with other nodes each call is counted once before")
    func unlock() async throws {
        let caller = try await Caller()
        let (world, device, container, pin) = (caller.world, caller.device, caller.container, caller.pin)
        let written = WrittenStatements(world.base.database)
        let counted = try caller.node(on: written)
        func send(_ path: String, _ body: some MessagePart) async throws {
            try await caller.send(path, body, to: counted)
        }
        // Without other nodes calls are counted in memory.
        let count = TestDatabase.isPostgreSQL ? [["INSERT attempts"]] : []
        let kept = pin.kept.withLock { $0 }
        let body = pin.body(kept, next: kept.r, element: kept.publicKey)
        for _ in 0..<2 {
            // The second one is the same request: not counted, not noted again, and no more statements.
            try await send("slots/unlock", body)
            #expect(written.taken() == count + [["UPDATE signing_slots", "INSERT audit"]])
        }
        #expect(try await device.status(container.did).slots.first?.spare == 19)
        pin.kept.withLock { $0.r = kept.r }
        let opened = try #require(try await pin.unlock("2580"))
        try await send("slots/confirm", try await pin.confirmation(opened))
        #expect(
            written.taken() == count + [["INSERT signing_confirms", "UPDATE signing_slots", "INSERT audit"]])

        let (txn, _) = try await world.asked()
        let document = try await device.fetch(txn, container)
        device.keys.withLock { $0["payments"] = opened.key }
        let decision = try device.decision(document, status: "accept", unl: try opened.unl)
        try await send("transactions/decide", try await device.signed(decision, label: "payments"))
        let all = written.taken()
        // The call's count, and one transaction that has all that a decision changes.
        #expect(Array(all.dropLast()) == count, "\(all)")
        #expect(all.last?.contains("INSERT signing_decisions") == true && all.last?.last == "INSERT audit", "\(all)")
        #expect(all.last.map { $0.count <= 8 } == true, "\(all)")
        #expect(try await world.state(txn) == "APPROVED")
    }
}
