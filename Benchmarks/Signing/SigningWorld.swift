import AssentCore
import AssentEngine
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import Logging
import SigningTesting

/// An issuer on a database file, with a user who has signed in, and the device that calls it without HTTP. Its clock
/// goes on by itself with each call, since a container may make 120 in a minute.
final class SigningWorld: TestIssuer {
    /// A transaction that a device has fetched, and its decision, sealed and proved.
    struct Prepared: Sendable {
        let txn: String
        let proof: String
        let body: [UInt8]
        /// The decision's compact text and its hash, to be written by hand.
        let decision: String
        let dh: String
    }

    let database: CountingDatabase
    let provider: SigningProvider
    let clock = ManualClock()
    private let context: EngineContext
    private let caller: SigningCaller
    private let calls = Locked(0)

    static let name = "https://bench.example/am/signing/realms/root/realms/alpha"
    private static let realm = "/alpha"
    private static let details = """
        [{"amount":"200.00","to":"Bob"}]
        """

    init(path: String, withPIN: Bool = false) async throws {
        database = CountingDatabase(try await DatabaseLocation.sqlite(path: path).open(clock: clock))
        let random = SystemRandom()
        context = EngineContext(
            database: database, clock: clock, random: random,
            masterKey: try MasterKey(Secret(bytes: random.bytes(MasterKey.byteCount))),
            logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() }))
        var template = SigningTemplate(title: LocalizedText("Confirm payment"), notShown: ["/"])
        template.lifetime = 3600
        var settings = SigningSettings(
            issuer: SigningIssuer(name: Self.name, realm: Self.realm), name: "Bank of Example",
            templates: ["payment": template])
        if withPIN {
            settings.policies = [try Self.policy()]
            settings.keys = [
                SigningSettings.offered(.sign, "payments", policy: "pin", of: settings.policies)
            ]
        }
        settings.limits.openOfClient = 1_000_000
        settings.limits.openOfUser = 1_000_000
        settings.limits.perMinute = 1_000_000
        settings.limits.unanswered = 1_000_000
        provider = SigningProvider(context, settings: settings)
        guard
            let user = try await Users(context).create(
                username: "ana", realm: Self.realm, passwordHash: nil)
        else {
            throw BenchFailure("the user is there already")
        }
        let sessions = Sessions(context)
        let begun = try await sessions.begin(
            userID: user.id, realm: Self.realm, limits: SessionLimits())
        guard let session = try await sessions.live(token: begun.token) else {
            throw BenchFailure("no session")
        }
        caller = SigningCaller(session)
    }

    /// A PIN whose guesses the server counts.
    static func policy() throws -> ProtectionPolicy {
        guard let cost = PasswordCost("$scrypt$ln=14,r=8,p=1") else {
            throw BenchFailure("no such cost")
        }
        return ProtectionPolicy(
            id: "pin", biometry: false,
            password: ProtectionPolicy.Password(
                mode: .assisted, cost: cost, rules: PasswordRules(minLength: 4, maxLength: 12),
                lock: .assisted(AssistedPasswordLock(max: 5, cap: 20, delays: []))))
    }

    var name: String { Self.name }

    /// How many calls of devices it has answered.
    var answered: Int { calls.withLock { $0 } }

    func configuration() async throws -> (bytes: [UInt8], nonce: String) {
        (try await provider.door.configuration(), provider.door.nonce())
    }

    func send(_ path: String, proof: String?, body: String) async throws -> String {
        guard let call = DeviceCall(rawValue: path) else { throw BenchFailure("there is no \(path)") }
        return try await answer(call, proof: proof, body: Array(body.utf8))
    }

    func answer(_ call: DeviceCall, proof: String?, body: [UInt8]) async throws -> String {
        clock.advance(by: 0.6)
        calls.withLock { $0 += 1 }
        do {
            return try await provider.door.answer(call, proof: proof, body: body, address: "192.0.2.1")
        } catch {
            throw BenchFailure("\(call) is refused: \(error.code.rawValue)")
        }
    }

    /// A device that may approve.
    func enrolled() async throws -> (device: TestDevice, container: TestDevice.Enrolled) {
        let invite = try await provider.invites.make(caller, user: nil)
        guard let code = InviteCode(typed: invite.code.reveal()) else { throw BenchFailure("no code") }
        let device = try TestDevice(self)
        let container = try await device.enrol(code)
        _ = try await provider.invites.enter(digits: container.digits, caller, pid: invite.pid)
        return (device, container)
    }

    /// The same with the PIN 2580.
    func enrolledWithPIN() async throws -> (
        device: TestDevice, container: TestDevice.Enrolled, pin: TestPIN
    ) {
        let invite = try await provider.invites.make(caller, user: nil)
        guard let code = InviteCode(typed: invite.code.reveal()) else { throw BenchFailure("no code") }
        let device = try TestDevice(self, modes: [.device, .assisted])
        let (container, pin) = try await device.enrol(code, pin: "2580")
        _ = try await provider.invites.enter(digits: container.digits, caller, pid: invite.pid)
        return (device, container, pin)
    }

    /// Approvals that are ready to be sent.
    func prepare(_ count: Int, _ device: TestDevice, _ container: TestDevice.Enrolled) async throws
        -> [Prepared]
    {
        var prepared: [Prepared] = []
        for _ in 0..<count {
            let made = try await provider.parties.create(
                TransactionWish(
                    clientID: "shop", clientName: "Example Shop", user: "ana", template: "payment",
                    details: Self.details, idempotencyKey: context.random.uuid()))
            let txn = made.txn
            let document = try await device.fetch(txn, container)
            let body = try await device.signed(
                try device.decision(document, status: "accept"), label: "payments")
            let sealed = try await device.sealed(body.encoded(), sender: container.did.text)
            prepared.append(
                Prepared(
                    txn: txn.text,
                    proof: try await device.proof(container.did, path: "transactions/decide", body: sealed),
                    body: Array(sealed.utf8), decision: body.decision,
                    dh: SigningHash.decision(body.decision).text))
        }
        return prepared
    }
}

/// A database that notes what is written.
final class CountingDatabase: SQLDatabase {
    private let database: any SQLDatabase
    private let written = Locked<[String]>([])

    init(_ database: any SQLDatabase) { self.database = database }

    /// The first words of the statements that have been run in writing transactions since it was asked last.
    func taken() -> [String] {
        written.withLock { written in
            defer { written = [] }
            return written
        }
    }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        try await run([statement]).first ?? []
    }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        let words = statements.filter { !$0.isRead }.map {
            $0.sql.text().split(whereSeparator: \.isWhitespace)
        }
        written.withLock { $0 += words.map { $0.prefix(3).joined(separator: " ") } }
        return try await database.run(statements)
    }

    func checkHealth() async throws { try await database.checkHealth() }

    func close() async throws { try await database.close() }
}
