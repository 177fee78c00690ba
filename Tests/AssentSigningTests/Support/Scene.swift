import AssentCore
import AssentJOSE
import AssentSigning
import AssentTesting
import AssentVault
import Logging

/// A server, and a device whose store and keys outlive the device object.
struct Scene: Sendable {
    let server: ScriptedServer
    let store: MemorySecretStore
    let keys = MemoryKeyProvider()
    let clock = ManualClock()
    let uptime = Locked(Duration.zero)

    init() throws {
        server = try ScriptedServer()
        store = MemorySecretStore(clock: clock)
    }

    /// A device object: a new one is a restart.
    func device(
        _ fault: Fault = .never, configuration: SigningDeviceConfiguration = SigningDeviceConfiguration()
    ) -> SigningDevice {
        SigningDevice(
            store: FaultyStore(base: store, fault: fault), keys: keys,
            transport: FaultyTransport(base: server.transport, fault: fault), configuration: configuration,
            clock: clock, random: SystemRandom(), logger: Logger(label: "test"),
            uptime: { [uptime] in uptime.withLock { $0 } })
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

    /// A transaction that was fetched.
    func fetched(_ container: SigningContainer, on device: SigningDevice) async throws -> SigningTransaction {
        let txn = await server.ask()
        return try await device.retrieveTransactionInfo(server.ticket(txn)).transaction()
    }
}
