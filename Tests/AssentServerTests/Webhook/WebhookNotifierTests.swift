import AssentCore
import AssentSigningProtocol
import AssentTesting
import Foundation
import HTTPTypes
import InMemoryLogging
import Logging
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Messages to the service that an operator names")
struct WebhookNotifierTests {
    private static let issuer = "https://am.bank.example/am/signing/realms/root/realms/alpha"

    /// A service, and what sends to it.
    private struct World {
        let clock: ManualClock
        let log: InMemoryLogHandler
        let receiver: WebhookReceiver
        let notifier: WebhookNotifier

        init(capacity: Int) async throws {
            let (clock, log) = (ManualClock(), InMemoryLogHandler())
            let receiver = try await WebhookReceiver(now: clock.now)
            (self.clock, self.log, self.receiver) = (clock, log, receiver)
            let logger = Logger(label: "test") { [log] _ in log }
            notifier = WebhookNotifier(
                WebhookSettings(url: receiver.url, key: Secret(bytes: WebhookReceiver.key)),
                calls: try OutboundCalls(
                    to: [receiver.url], settings: receiver.outbound(), connections: WebhookNotifier.atOnce,
                    clock: clock, logger: logger),
                capacity: capacity, clock: clock, logger: logger)
        }

        /// Whether something like this is in the log, and how often.
        func logged(_ text: String) -> Int { log.entries.count { "\($0.message)".contains(text) } }

        func waitForPause() async {
            while clock.sleeperCount == 0, !Task.isCancelled { await Task.yield() }
        }

        func news(_ txn: String = "t1", seconds: Int64 = 180) -> TransactionNews {
            TransactionNews(
                issuer: WebhookNotifierTests.issuer, userID: "ana", txn: txn, did: nil,
                expiresAt: clock.epochSeconds + seconds, pushIDs: ["push-1"])
        }

        func removal() -> DeviceNews {
            DeviceNews(
                event: .removed, issuer: WebhookNotifierTests.issuer, userID: "ana", did: "d1", name: "Ana's phone",
                pushID: nil, at: clock.epochSeconds - 60)
        }
    }

    /// Runs `body` in a world that is gone afterwards, whether or not messages have left.
    private static func run(
        capacity: Int = WebhookNotifier.usualCapacity, sending: Bool = true, _ body: (World) async throws -> Void
    ) async throws {
        let world = try await World(capacity: capacity)
        let running = Task { [notifier = world.notifier] in
            if sending { await notifier.run() }
        }
        let result: Result<Void, any Error>
        do {
            try await body(world)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        running.cancel()
        await running.value
        await world.receiver.stop()
        try result.get()
    }

    @Test("A signature is the one that Standard Webhooks' own libraries make")
    func vector() throws {
        let key = try #require(Data(base64Encoded: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        let message = WebhookMessage(id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: Array(#"{"test": 2432232314}"#.utf8))
        let fields = message.fields(signedWith: Secret(bytes: key), at: 1_614_265_330)
        let name = try #require(HTTPField.Name("webhook-signature"))
        #expect(fields[name] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test("One POST for each, signed, that says who is asked and where they are, and nothing of what is asked")
    func content() async throws {
        try await Self.run { world in
            await world.notifier.notify(world.news())
            await world.receiver.waitForRequests(1)
            await world.notifier.notify(world.removal())
            await world.receiver.waitForRequests(2)
            for request in world.receiver.requests {
                #expect(request.line == "POST /push?token=of-the-service HTTP/1.1")
                #expect(request.values("content-type") == ["application/json"])
                #expect(request.values("webhook-timestamp") == ["1767225600"])
                #expect(WebhookReceiver.isSigned(request))
            }
            #expect(Set(world.receiver.requests.flatMap { $0.values("webhook-id") }).count == 2)
            let common = #""data":{"iss":"\#(Self.issuer)","user":"ana","#
            #expect(
                world.receiver.requests.map { String(decoding: $0.body, as: UTF8.self) } == [
                    #"{"type":"transaction.waiting","timestamp":"2026-01-01T00:00:00Z",\#(common)"#
                        + #""txn":"t1","exp":1767225780,"pushIds":["push-1"]}}"#,
                    #"{"type":"device.removed","timestamp":"2025-12-31T23:59:00Z",\#(common)"#
                        + #""did":"d1","name":"Ana's phone"}}"#,
                ])
            #expect(world.log.entries.isEmpty)
        }
    }

    @Test("What fails is sent again under the same id with a new signature, and a redirect is not followed")
    func again() async throws {
        try await Self.run { world in
            let answers = Locked(["503 Service Unavailable", "302 Found"])
            let elsewhere = "Location: https://localhost:\(world.receiver.service.port)/elsewhere"
            world.receiver.service.answer { _, peer in
                peer.answer(
                    answers.withLock { $0.isEmpty ? "200 OK" : $0.removeFirst() }, fields: [elsewhere])
            }
            await world.notifier.notify(world.news())
            for (index, pause) in WebhookMessage.pauses.prefix(2).enumerated() {
                await world.receiver.waitForRequests(index + 1)
                await world.waitForPause()
                world.clock.advance(by: pause)
            }
            await world.receiver.waitForRequests(3)
            await world.notifier.finish()
            let requests = world.receiver.requests
            #expect(requests.count == 3)
            #expect(Set(requests.map(\.line)) == ["POST /push?token=of-the-service HTTP/1.1"])
            #expect(Set(requests.map(\.body)).count == 1)
            #expect(Set(requests.flatMap { $0.values("webhook-id") }).count == 1)
            #expect(requests.flatMap { $0.values("webhook-timestamp") } == ["1767225600", "1767225605", "1767225635"])
            #expect(Set(requests.flatMap { $0.values("webhook-signature") }).count == 3)
            for request in requests { #expect(WebhookReceiver.isSigned(request)) }
            #expect(world.log.entries.map(\.level) == [.warning, .info])
            #expect(world.log.entries.map { "\($0.metadata["error"] ?? "")" } == ["status(503)", "status(302)"])
            let log = world.log.entries.map { "\($0.message) \($0.metadata)" }.joined()
            for text in ["whsec", "of-the-service", "ana", "t1", "push-1"] { #expect(!log.contains(text), "\(text)") }
        }
    }

    @Test("It is given up after five attempts")
    func givenUp() async throws {
        try await Self.run { world in
            world.receiver.service.answer { _, peer in peer.answer("500 Internal Server Error") }
            await world.notifier.notify(world.removal())
            for (index, pause) in WebhookMessage.pauses.enumerated() {
                await world.receiver.waitForRequests(index + 1)
                await world.waitForPause()
                world.clock.advance(by: pause - 0.5)
                #expect(world.receiver.requests.count == index + 1)
                world.clock.advance(by: 0.5)
            }
            await world.receiver.waitForRequests(5)
            while world.logged("is given up") == 0, !Task.isCancelled { await Task.yield() }
            #expect(await world.notifier.count == 0)
            #expect(world.clock.sleeperCount == 0)
        }
    }

    @Test("It is not sent again when its transaction has expired by then")
    func expired() async throws {
        try await Self.run { world in
            world.receiver.service.answer { _, peer in peer.answer("500 Internal Server Error") }
            await world.notifier.notify(world.news(seconds: 20))
            await world.receiver.waitForRequests(1)
            await world.waitForPause()
            world.clock.advance(by: 5)
            await world.receiver.waitForRequests(2)
            while world.logged("is given up") == 0, !Task.isCancelled { await Task.yield() }
            #expect(await world.notifier.count == 0)
        }
    }

    @Test("What has expired while it waited is not sent, and keeps nothing else waiting")
    func late() async throws {
        try await Self.run(sending: false) { world in
            await world.notifier.notify(world.news(seconds: 10))
            await world.notifier.notify(world.removal())
            world.clock.advance(by: 10)
            await world.notifier.finish()
            await world.notifier.run()
            let sent = try world.receiver.requests.map { try JSONValue.parse($0.body)["type"] }
            #expect(sent == ["device.removed"])
            #expect(world.logged("have expired") == 1)
            #expect(await world.notifier.count == 0)
        }
    }

    @Test(
        "A service that does not answer, or cannot be reached, is asked again",
        arguments: [HTTPTransportError.Code.timedOut, .connectFailed, .untrustedServer])
    func unreachable(code: HTTPTransportError.Code) async throws {
        let (clock, log, tries) = (ManualClock(), InMemoryLogHandler(), Watched(0))
        let transport = InMemoryTransport { _ in
            let count = tries.update { tries in
                tries += 1
                return tries
            }
            guard count > 1 else { throw HTTPTransportError(code, "", mayHaveHadEffect: true) }
            return HTTPReply.json(200, [:])
        }
        let notifier = WebhookNotifier(
            WebhookSettings(url: "https://push.bank.example/", key: Secret(bytes: WebhookReceiver.key)),
            calls: OutboundCalls(transport), clock: clock, logger: Logger(label: "test") { [log] _ in log })
        await notifier.notify(
            TransactionNews(
                issuer: Self.issuer, userID: "ana", txn: "t1", did: nil, expiresAt: clock.epochSeconds + 180,
                pushIDs: []))
        let running = Task { await notifier.run() }
        await tries.wait { $0 == 1 }
        while clock.sleeperCount == 0, !Task.isCancelled { await Task.yield() }
        #expect(log.entries.count == 1)
        #expect(log.entries.allSatisfy { "\($0.metadata["error"] ?? "")".contains(code.rawValue) })
        clock.advance(by: 5)
        await tries.wait { $0 == 2 }
        await notifier.finish()
        await running.value
        #expect(transport.exchanges.count == 2)
        #expect(await notifier.count == 0)
    }

    @Test("Of an answer only the status is looked at, however long it would be")
    func longAnswer() async throws {
        try await Self.run { world in
            world.receiver.service.answer { _, peer in
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nbegins")
            }
            for count in 1...2 * WebhookNotifier.atOnce {
                await world.notifier.notify(world.news("t\(count)"))
                await world.receiver.waitForRequests(count)
            }
            await world.notifier.finish()
            #expect(world.log.entries.isEmpty)
        }
    }

    @Test("Too many drop the first, each with a line in the log")
    func bounded() async throws {
        try await Self.run(capacity: 3, sending: false) { world in
            for count in 1...5 { await world.notifier.notify(world.news("t\(count)")) }
            #expect(await world.notifier.count == 3)
            #expect(world.logged("is dropped") == 2)
            await world.notifier.finish()
            await world.notifier.run()
            let sent = try world.receiver.requests.map { try JSONValue.parse($0.body)["data"]?["txn"]?.string }
            #expect(sent.sorted { ($0 ?? "") < ($1 ?? "") } == ["t3", "t4", "t5"])
        }
    }

    @Test("A stop sends what waits once, and says how much was not delivered")
    func stop() async throws {
        try await Self.run(sending: false) { world in
            for count in 1...20 { await world.notifier.notify(world.news("t\(count)")) }
            await world.notifier.finish()
            await world.notifier.run()
            #expect(world.receiver.requests.count == 20)
            #expect(await world.notifier.count == 0)
            #expect(world.log.entries.isEmpty)
        }
        try await Self.run(sending: false) { world in
            world.receiver.service.answer { _, peer in peer.answer("503 Service Unavailable") }
            for count in 1...20 { await world.notifier.notify(world.news("t\(count)")) }
            await world.notifier.finish()
            await world.notifier.run()
            #expect(world.receiver.requests.count == 20)
            #expect(world.log.entries.last?.metadata["messages"] == "20")
            #expect(world.clock.sleeperCount == 0)
        }
    }

    @Test("A stop that is cut short waits for nobody who does not answer")
    func cutShort() async throws {
        try await Self.run(sending: false) { world in
            world.receiver.service.hold()
            await world.notifier.notify(world.news())
            let running = Task { [notifier = world.notifier] in await notifier.run() }
            await world.receiver.service.waitUntilHeld()
            await world.notifier.finish()
            running.cancel()
            await running.value
            #expect(world.receiver.requests.count == 1)
            #expect(world.logged("were not delivered") == 1)
        }
    }
}
