import AssentCore
import AssentSigning
import HTTPTypes
import Testing

@Suite("Signing device: what an app says about connections")
struct ConnectionTests {
    /// A transport that remembers the limits of each call, and loses answers of one path.
    private struct WatchedTransport: HTTPTransport {
        let base: any HTTPTransport
        let lost = Locked((path: "", times: 0))
        let limits = Locked<[String: [HTTPLimits]]>([:])

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let path = call.request.path ?? ""
            limits.withLock { $0[path, default: []].append(call.limits) }
            let reply = try await base.send(call)
            let isLost = lost.withLock { lost in
                guard path.hasSuffix(lost.path), lost.times > 0 else { return false }
                lost.times -= 1
                return true
            }
            if isLost { throw HTTPTransportError(.connectionClosed, "The answer was lost.") }
            return reply
        }

        func lose(_ path: String, _ times: Int) { lost.withLock { $0 = (path, times) } }
    }

    private let scene: Scene
    private let transport: WatchedTransport

    init() throws {
        scene = try Scene()
        transport = WatchedTransport(base: scene.server.transport)
    }

    private func device(_ change: (inout SigningDeviceConfiguration) -> Void) -> SigningDevice {
        var configuration = SigningDeviceConfiguration()
        change(&configuration)
        return SigningDevice(
            store: scene.store, keys: scene.keys, transport: transport, configuration: configuration,
            clock: scene.clock)
    }

    @Test(
        "A call without an answer is sent again as often as the app says, and no more",
        arguments: [(nil, 1), (-1, 1), (0, 1), (1, 2), (3, 4), (5, 6), (6, 6)] as [(Int?, Int)])
    func retries(retries: Int?, sent: Int) async throws {
        let enrolled = try await scene.enrolled(scene.device())
        let device = device { $0.retries = retries }
        let container = try await device.container(enrolled.id)
        let refusal = ScriptedServer.Refusal(status: 503, code: "unavailable")
        func asked() async -> Int { await scene.server.asked.count { $0 == "/device/status" } }
        let before = await asked()
        await scene.server.refuse("/device/status", refusal, times: sent)
        await #expect(throws: SigningError(.unavailable)) { try await container.status() }
        #expect(await asked() == before + sent)
        await scene.server.refuse("/device/status", refusal, times: sent - 1)
        #expect(try await container.status().state == .active)
        #expect(await asked() == before + 2 * sent)
        // What was refused for a reason is not sent again.
        await scene.server.refuse("/device/status", .init(status: 403, code: "container_blocked"))
        await #expect(throws: SigningError(.containerBlocked)) { try await container.status() }
        #expect(await asked() == before + 2 * sent + 1)
    }

    @Test("A decision whose answers were lost is sent again with the same bytes, counts once, and its receipt is told")
    func lostAnswers() async throws {
        let enrolled = try await scene.enrolled(scene.device())
        let device = device { $0.retries = 2 }
        let transaction = try await scene.fetched(device.container(enrolled.id), on: device)
        transport.lose("/device/transactions/decide", 2)
        #expect(try await transaction.setStatus("accept", number: "42").effect == .approve)
        #expect(await scene.server.decisions.count == 1)
        let second = try await scene.fetched(device.container(enrolled.id), on: device)
        transport.lose("/device/transactions/decide", 3)
        await #expect(throws: SigningError(.remote)) { try await second.setStatus("accept", number: "42") }
        #expect(try await device.unreceiptedTransactions() == [second.id])
        var receipts: [SigningReceipt] = []
        try await device.sendQueued { receipts.append($0) }
        #expect(receipts.map(\.transactionID) == [second.id] && receipts.map(\.effect) == [.approve])
        #expect(try await device.unreceiptedTransactions().isEmpty)
        try await device.sendQueued { receipts.append($0) }
        #expect(receipts.count == 1)
        #expect(await scene.server.transactions.map(\.effect) == ["approve", "approve"])
        #expect(await scene.server.decisions.count == 2)
    }

    @Test("The receipt of a decision whose answers were lost is told, also when its transaction has expired since")
    func lateReceipt() async throws {
        let enrolled = try await scene.enrolled(scene.device())
        let device = device { $0.retries = 2 }
        let container = try await device.container(enrolled.id)
        let transaction = try await scene.fetched(container, on: device)
        transport.lose("/device/transactions/decide", 3)
        await #expect(throws: SigningError(.remote)) { try await transaction.setStatus("accept", number: "42") }
        await scene.server.set(time: 2000)
        try await container.status()
        var receipts: [SigningReceipt] = []
        try await device.sendQueued { receipts.append($0) }
        #expect(receipts.map(\.transactionID) == [transaction.id] && receipts.map(\.effect) == [.approve])
        #expect(try await device.unreceiptedTransactions().isEmpty)
        #expect(await scene.server.decisions.count == 1)
    }

    @Test("A wrong number whose answers were lost is told and forgotten; a refusal of what is open is not believed")
    func lostRefusal() async throws {
        let enrolled = try await scene.enrolled(scene.device())
        let device = device { $0.retries = 2 }
        let container = try await device.container(enrolled.id)
        let wrong = try await scene.fetched(container, on: device)
        transport.lose("/device/transactions/decide", 3)
        await #expect(throws: SigningError(.remote)) { try await wrong.setStatus("accept", number: "43") }
        // The signed list is needed to believe it.
        transport.lose("/device/transactions/list", 3)
        await #expect(throws: SigningError(.transactionFailed)) { try await device.sendQueued() }
        #expect(try await device.unreceiptedTransactions() == [wrong.id])
        var refusals: [SigningError] = []
        func send() async throws { try await device.sendQueued(onRefusal: { refusals.append($0) }) }
        await #expect(throws: SigningError(.transactionFailed)) { try await send() }
        #expect(refusals == [SigningError(.transactionFailed)] && refusals.first?.transactionID == wrong.id)
        #expect(try await device.unreceiptedTransactions().isEmpty)
        try await send()

        let open = try await scene.fetched(container, on: device)
        let forged = ScriptedServer.Refusal(status: 410, code: "tx_failed")
        await scene.server.refuse("/device/transactions/decide", forged, times: 2)
        await #expect(throws: SigningError(.transactionFailed)) { try await open.setStatus("accept", number: "42") }
        await #expect(throws: SigningError(.transactionFailed)) { try await send() }
        #expect(try await device.unreceiptedTransactions() == [open.id] && refusals.count == 1)
        try await send()
        #expect(try await device.unreceiptedTransactions().isEmpty)
        #expect(await scene.server.transactions.map(\.effect) == [nil, "approve"])
    }

    @Test(
        "A try of a PIN whose answer was lost is sent again once unless the app says otherwise",
        arguments: [(nil, true), (0, false), (1, true)] as [(Int?, Bool)])
    func lostTry(retries: Int?, isAnswered: Bool) async throws {
        let enrolled = try await scene.enrolled(
            scene.device(), [.signing: "271828"], by: ScriptedServer.PasswordOffer(.assisted))
        var configuration = SigningDeviceConfiguration()
        configuration.retries = retries
        let device = scene.device(configuration: configuration)
        let password = try #require(await device.container(enrolled.id).password(.signing))
        try await password.verify(Secret("271828"))
        await scene.server.refuse("/device/slots/unlock", .init(status: 503, code: "unavailable"))
        if isAnswered {
            try await password.verify(Secret("271828"))
        } else {
            await #expect(throws: SigningError(.unavailable)) { try await password.verify(Secret("271828")) }
        }
        #expect(await scene.server.asked.count { $0 == "/device/slots/unlock" } == (isAnswered ? 3 : 2))
    }

    @Test("Each call has the app's limits, and a long poll the time for which the server waits besides")
    func limits() async throws {
        let enrolled = try await scene.enrolled(scene.device())
        let limits = HTTPLimits(connect: .seconds(2), read: .seconds(3), total: .seconds(5), replyBytes: 100_000)
        let container = try await device { $0.limits = limits }.container(enrolled.id)
        try await container.status()
        _ = try await container.transactionIDs()
        _ = try await container.transactionIDs(wait: 25)
        let longer = HTTPLimits(connect: .seconds(2), read: .seconds(28), total: .seconds(30), replyBytes: 100_000)
        let seen = transport.limits.withLock { $0 }
        #expect(
            seen == [
                "/signing/configuration": [limits], "/signing/device/status": [limits],
                "/signing/device/transactions/list": [limits, longer],
            ])
    }
}
