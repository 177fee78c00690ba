import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import AssentVault
import SigningTesting
import Foundation
import HTTPTypes
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

/// A device of the SDK that calls an engine without HTTP, with files that outlive the device object.
final class SDKWorld: Sendable {
    let world: SigningWorld
    let store: any SecretStore
    let keys: any KeyProvider
    private let keyFile: URL
    /// The device's clock, which may be another one than the issuer's.
    let deviceClock: ManualClock

    /// `kind` is what the provider of the device's keys calls itself; `nil` for the software's own name.
    init(_ world: SigningWorld, clock: ManualClock? = nil, kind: String? = nil) throws {
        self.world = world
        deviceClock = clock ?? world.base.clock
        store = MemorySecretStore(clock: deviceClock)
        keyFile = world.base.directory.appending(path: "\(UUID()).key")
        let software = SoftwareKeyProvider(unprotectedFile: keyFile)
        keys = kind.map { NamedKeys(kind: $0, base: software) } ?? software
    }

    /// What a world and its device have left.
    struct Left: Sendable {
        /// The device's container.
        let container: String
        fileprivate let world: SigningWorld.Left
        fileprivate let secrets: [String: Secret]
        fileprivate let keys: Data
    }

    /// A world that begins with what another one has left, and the same device in it.
    convenience init(beginningWith left: Left) async throws {
        let world = try await SigningWorld(beginningWith: left.world)
        try self.init(world)
        let isMade = FileManager.default.createFile(
            atPath: keyFile.path, contents: left.keys, attributes: [.posixPermissions: 0o600])
        try #require(isMade)
        for (name, secret) in left.secrets { _ = try await store.update(name, to: secret, expected: .absent) }
    }

    /// Closes the world's database, as ``TransactionFixture/left()`` does.
    func left(with container: SigningContainer) async throws -> Left {
        var secrets: [String: Secret] = [:]
        for name in try await store.names() { secrets[name] = try await store.value(name)?.value }
        let keys = try Data(contentsOf: keyFile)
        return Left(container: container.id, world: try await world.left(), secrets: secrets, keys: keys)
    }

    /// What somebody has who has copied this device's files.
    func copy() async throws -> SDKWorld {
        let copy = try SDKWorld(world, clock: deviceClock)
        for name in try await store.names() {
            guard let stored = try await store.value(name) else { continue }
            _ = try await copy.store.update(name, to: stored.value, expected: .absent)
        }
        try FileManager.default.copyItem(at: keyFile, to: copy.keyFile)
        return copy
    }

    var clock: ManualClock { world.base.clock }

    /// Whether nothing of any container is left.
    var isEmpty: Bool {
        get async throws {
            let (keys, containers) = (try await keys.keyNames(), try await device().containers())
            return keys.isEmpty && containers.isEmpty
        }
    }

    /// Fails at one effect, before or after it; nothing works any more then, as if the process had ended.
    final class Crash: Sendable {
        struct Happened: Error {}

        /// When to fail, until nothing is left to fail at. Each world costs more on PostgreSQL, and the device does the
        /// same there.
        static let moments = stride(from: 0, to: 80, by: step)
        static let step = TestDatabase.isPostgreSQL && !Soak.isOn ? 3 : 1

        private let left: Locked<Int>
        private let isAfter: Bool

        init(at moment: Int, after isAfter: Bool) {
            left = Locked(moment)
            self.isAfter = isAfter
        }

        var hasHappened: Bool { left.withLock { $0 < 0 } }

        func around<Result>(_ effect: () async throws -> Result) async throws -> Result {
            let now = try left.withLock { left in
                if left < 0 { throw Happened() }
                left -= 1
                return left < 0
            }
            guard now else { return try await effect() }
            if isAfter { _ = try await effect() }
            throw Happened()
        }
    }

    private struct CrashingStore: SecretStore {
        let base: any SecretStore
        let crash: Crash

        func value(_ name: String) async throws -> StoredSecret? { try await base.value(name) }

        func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
            try await crash.around { try await base.update(name, to: value, expected: expected) }
        }

        func names() async throws -> [String] { try await base.names() }

        func removeAll() async throws { try await base.removeAll() }

        func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
            try await base.lease(name, deadline: deadline)
        }
    }

    /// A device object: a new one is a restart. Calls do not reach the server whose path ends with what `outage` names,
    /// or when the postman says so.
    func device(
        _ crash: Crash = Crash(at: .max, after: false), outage: Locked<String?> = Locked(nil), postman: Postman? = nil
    ) -> SigningDevice {
        let transport = InMemoryTransport { [world] exchange in
            let path = exchange.request.path ?? ""
            if let place = outage.withLock({ $0 }), path.hasSuffix(place) {
                throw HTTPTransportError(.connectFailed, "the network is away")
            }
            let isCall = !path.hasSuffix("/configuration")
            return try await crash.around {
                guard let postman, isCall else { return try await Self.answer(exchange, world) }
                return try await postman.carry { try await Self.answer(exchange, world) }
            }
        }
        // A guess costs nothing, which the server cannot see.
        return SigningDevice(
            store: CrashingStore(base: store, crash: crash), keys: keys, transport: transport,
            surroundings: SigningDevice.Surroundings(
                clock: deviceClock, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
                uptime: { .zero },
                stretch: { password, salt, _ in Secret(bytes: SHA2.sha256(salt + password.secret.revealBytes())) }))
    }

    private static func answer(_ exchange: InMemoryTransport.Exchange, _ world: SigningWorld) async throws -> HTTPReply
    {
        let path = (exchange.request.path ?? "").components(separatedBy: "/realms/alpha/").last ?? ""
        var fields: HTTPFields = [:]
        if let name = HTTPField.Name("TSP-Nonce") { fields[name] = world.provider.door.nonce() }
        let ok = HTTPResponse(status: .ok, headerFields: fields)
        if path == "configuration" {
            return HTTPReply(ok, body: HTTPBody(try await world.provider.door.configuration()))
        }
        let proof = HTTPField.Name("TSP-Proof").flatMap { exchange.request.headerFields[$0] }
        do {
            let call = String(path.dropFirst("device/".count))
            return HTTPReply(ok, body: HTTPBody(try await world.send(call, proof: proof, body: exchange.text)))
        } catch let refusal as TestRefusal {
            let problem: JSONValue = ["code": .string(refusal.code), "title": "No"]
            return HTTPReply(
                HTTPResponse(status: .badRequest, headerFields: fields), body: HTTPBody(problem.serializedBytes()))
        }
    }

    /// Lets time pass until the keys of a container may be renewed.
    func passUntilDue(_ container: SigningContainer) {
        clock.advance(by: container.renewableFrom.timeIntervalSince(clock.now) + 60)
    }

    /// A container of Ana's that is active.
    func enrolled(_ device: SigningDevice, pin: Secret? = nil) async throws -> SigningContainer {
        let shown = try await world.provider.invites.make(world.ana, user: nil)
        let invite = try SigningInvite(scanned: shown.qr.reveal())
        let prompt = pin.map { pin -> SigningPasswordPrompt in { _ in pin } }
        let enrolment = try await device.enrol(invite, name: "Ana's laptop", password: prompt)
        let status = try await world.provider.invites.enter(
            digits: try #require(enrolment.digits), world.ana, pid: shown.pid)
        try #require(status.state == "ACTIVE")
        try await device.container(enrolment.containerID).status()
        return try await device.container(enrolment.containerID)
    }

    /// Asks for a payment, and approves it.
    func approve(
        _ container: SigningContainer, on device: SigningDevice, pin: Secret? = nil
    ) async throws -> SigningReceipt {
        let asked = try await world.asked()
        let ids = try await container.transactionIDs()
        for id in ids {
            let info = try await device.retrieveTransactionInfo(id)
            if info.transactionID == asked.txn.text {
                return try await info.transaction().setStatus("accept", password: pin)
            }
        }
        throw TestRefusal("not in the list")
    }

    /// What a verifier says of the evidence of a transaction.
    func report(_ txn: String, trust: KeyThumbprint? = nil) async throws -> EvidenceReport {
        let bundle = try EvidenceBundle(reading: try await world.provider.evidence.bundle(txn, for: .client("shop")))
        let first = bundle.identities.first?.thumbprint
        return EvidenceVerification.report(on: bundle, trust: trust ?? first)
    }
}
