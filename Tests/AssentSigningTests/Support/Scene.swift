import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import AssentVault
import Logging

/// A server, and a device whose store and keys outlive the device object.
struct Scene: Sendable {
    let server: ScriptedServer
    var store: MemorySecretStore
    var keys = MemoryKeyProvider()
    let clock = ManualClock()
    let uptime = Locked(Duration.zero)
    /// Whether passwords cost what they do for a user: most tests need not wait for that.
    let isExpensive: Bool

    init(isExpensive: Bool = false, issuer: String = "https://am.example/signing") throws {
        self.isExpensive = isExpensive
        server = try ScriptedServer(issuer: issuer)
        store = MemorySecretStore(clock: clock)
    }

    /// A device object: a new one is a restart.
    func device(
        _ fault: Fault = .never, configuration: SigningDeviceConfiguration = SigningDeviceConfiguration()
    ) -> SigningDevice {
        SigningDevice(
            store: FaultyStore(base: store, fault: fault), keys: keys,
            transport: FaultyTransport(base: server.transport, fault: fault), configuration: configuration,
            surroundings: SigningDevice.Surroundings(
                clock: clock, logger: Logger(label: "test"),
                uptime: { [uptime] in uptime.withLock { $0 } },
                stretch: { [isExpensive] password, salt, cost throws(SigningProtocolError) in
                    if isExpensive { return try password.stretched(salt: salt, cost: cost) }
                    return Secret(bytes: SHA2.sha256(salt + password.secret.revealBytes()))
                }))
    }

    /// Whether nothing is left of any container.
    var isEmpty: Bool {
        get async {
            let names = await store.names()
            let keys = await keys.keyNames()
            return names.isEmpty && keys.isEmpty
        }
    }

    func invite() async throws -> SigningInvite { try SigningInvite(scanned: await server.invite()) }

    /// A container that is active.
    func enrolled(_ device: SigningDevice) async throws -> SigningContainer {
        let enrolment = try await device.enrol(invite(), name: "Ana's laptop")
        guard try await server.type(enrolment.digits) else { throw SigningError(.internal, "The digits differ.") }
        let container = try await device.container(enrolment.containerID)
        try await container.status()
        return try await device.container(enrolment.containerID)
    }

    /// A container that is active, behind passwords.
    func enrolled(
        _ device: SigningDevice, _ passwords: [PasswordSlot: String], by offers: ScriptedServer.PasswordOffer...
    ) async throws -> SigningContainer {
        switch offers.count {
        case 1: try await server.offer(offers[0])
        default: try await server.offer(offers[0], offers[1])
        }
        let enrolment = try await device.enrol(invite(), name: "Laptop") { Secret(passwords[$0.slot] ?? "") }
        guard try await server.type(enrolment.digits) else { throw SigningError(.internal, "The digits differ.") }
        try await device.container(enrolment.containerID).status()
        return try await device.container(enrolment.containerID)
    }

    /// The stored blobs of a password's keys, also of new ones on their way.
    func sealedBlobs(_ slot: PasswordSlot) async throws -> [String] {
        var blobs: [String] = []
        for name in await store.names() {
            guard let stored = try await store.value(name) else { continue }
            let record = try JSONValue.parse(stored.value.revealBytes())
            let slots = (record["next"] ?? record)["slots"]?.array ?? []
            for kept in slots where kept["slot"]?.string == slot.rawValue {
                blobs += (kept["current"]?["keys"]?.array ?? []).compactMap { $0["blob"]?.string }
            }
        }
        return blobs
    }

    /// The same store and keys once more, as somebody has who has copied the device.
    func copy() async throws -> Scene {
        var copy = self
        copy.store = MemorySecretStore(clock: clock)
        for name in await store.names() {
            guard let stored = try await store.value(name) else { continue }
            try await copy.store.update(name, to: stored.value, expected: .absent)
        }
        return copy
    }

    /// A transaction that was fetched.
    func fetched(_ container: SigningContainer, on device: SigningDevice) async throws -> SigningTransaction {
        let txn = await server.ask()
        return try await device.retrieveTransactionInfo(server.ticket(txn)).transaction()
    }
}
