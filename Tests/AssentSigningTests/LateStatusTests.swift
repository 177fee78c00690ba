import AssentCore
import AssentSigning
import AssentSigningProtocol
import HTTPTypes
import Testing

@Suite("Signing device: a signed status that arrives late")
struct LateStatusTests {
    /// Hands the first reply of a path on only when something else has happened.
    private struct HeldTransport: HTTPTransport {
        let base: any HTTPTransport
        let path: String
        let meanwhile: Locked<(@Sendable () async throws -> Void)?>

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let reply = try await base.send(call)
            guard reply.response.status == .ok, call.request.path?.hasSuffix(path) == true else { return reply }
            let first = meanwhile.withLock { meanwhile in
                defer { meanwhile = nil }
                return meanwhile
            }
            try await first?()
            return reply
        }
    }

    private let scene: Scene

    init() throws { scene = try Scene() }

    /// Asks how the container stands; `meanwhile` happens between the server's answer and what the device does with it.
    private func status(
        of container: SigningContainer, _ meanwhile: @escaping @Sendable () async throws -> Void
    ) async throws -> SigningContainerStatus {
        let transport = HeldTransport(
            base: scene.server.transport, path: "/device/status", meanwhile: Locked(meanwhile))
        let device = SigningDevice(store: scene.store, keys: scene.keys, transport: transport, clock: scene.clock)
        return try await device.container(container.id).status()
    }

    private func stored(_ container: SigningContainer) async throws -> SigningContainer {
        try await scene.device().container(container.id)
    }

    @Test("Of two that overlap the one that was signed later stays, in whatever order they arrive")
    func overlapping() async throws {
        let container = try await scene.enrolled(scene.device())
        let server = scene.server
        // The one that is held is the older one, then the newer one.
        for (held, other, state) in [(2000, 2030, ContainerState.blocked), (2130, 2100, .active)] {
            await server.set(state: .active)
            await server.set(time: held)
            let said = try await status(of: container) {
                await server.set(state: .blocked)
                await server.set(time: other)
                let newer = try await scene.device().container(container.id).status()
                #expect(newer.state == .blocked)
            }
            #expect(said.state == .active)
            #expect(try await stored(container).state == state)
        }
    }

    @Test("Of two that overlap and were signed in one second the stricter one stays, in whatever order they arrive")
    func together() async throws {
        let container = try await scene.enrolled(scene.device())
        let server = scene.server
        await server.set(time: 2000)
        for (held, other) in [(ContainerState.active, ContainerState.blocked), (.blocked, .active)] {
            // Also where the last one before was signed in that second.
            await server.set(state: .suspect)
            try await stored(container).status()
            #expect(try await stored(container).state == .suspect)
            await server.set(state: held)
            let said = try await status(of: container) {
                await server.set(state: other)
                let asked = try await scene.device().container(container.id).status()
                let kept = try await scene.device().container(container.id)
                #expect(asked.state == other && kept.state == other)
            }
            #expect(said.state == held)
            #expect(try await stored(container).state == .blocked)
        }
    }

    @Test("One that was asked for afterwards is taken, although another node's clock is behind")
    func behind() async throws {
        let container = try await scene.enrolled(scene.device())
        for (time, state) in [(2000, ContainerState.blocked), (1980, .active), (1979, .suspect)] {
            await scene.server.set(time: time)
            await scene.server.set(state: state)
            try await stored(container).status()
            #expect(try await stored(container).state == state)
        }
    }

    @Test("An evaluation that arrives late makes no room for a status that is older than the last one")
    func evaluation() async throws {
        let container = try await scene.enrolled(
            scene.device(), [.signing: "271828"], by: ScriptedServer.PasswordOffer(.assisted))
        let server = scene.server
        let later: @Sendable () async throws -> Void = {
            await server.set(time: 2020)
            await server.set(state: .blocked)
            try await scene.device().container(container.id).status()
        }
        await server.set(time: 2017)
        let said = try await status(of: container) {
            await server.set(time: 2015)
            let transport = HeldTransport(
                base: server.transport, path: "/device/slots/unlock", meanwhile: Locked(later))
            let device = SigningDevice(store: scene.store, keys: scene.keys, transport: transport, clock: scene.clock)
            let transaction = try await scene.fetched(container, on: device)
            await #expect(throws: SigningError(.wrongPassword)) {
                try await transaction.setStatus("accept", password: Secret("271829"), number: "42")
            }
        }
        #expect(said.state == .active)
        #expect(try await stored(container).state == .blocked)
    }

    @Test("One from before a wrong PIN does not give the try back that it has cost, and a later one says what is left")
    func tries() async throws {
        let device = scene.device()
        let container = try await scene.enrolled(
            device, [.signing: "271828"], by: ScriptedServer.PasswordOffer(.assisted))
        let transaction = try await scene.fetched(container, on: device)
        #expect(try await stored(container).passwords.first?.remaining == 5)
        let server = scene.server
        await server.set(time: 2000)
        let said = try await status(of: container) {
            await server.set(time: 2030)
            await #expect(throws: SigningError(.wrongPassword)) {
                try await transaction.setStatus("accept", password: Secret("271829"), number: "42")
            }
        }
        #expect(said.passwords.first?.tries == 5)
        #expect(try await stored(container).passwords.first?.remaining == 4)
        await server.edit(.signing) { $0.unlockByUser() }
        try await stored(container).status()
        #expect(try await stored(container).passwords.first?.remaining == 5)
    }
}
