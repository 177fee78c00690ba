import AssentConfiguration
import AssentCore
import AssentSigningProtocol
import AssentTesting
import Foundation
import Logging
import SigningTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("A server whose file names a service to be sent messages")
struct WebhookServerTests {
    private static func file(_ receiver: WebhookReceiver, _ text: String) -> String {
        """
        outbound: {privateHosts: [localhost], authorities: \(receiver.directory)/authority.pem}
        notify: {url: "\(receiver.url)", secretFile: \(receiver.directory)/notify.secret}

        """ + text
    }

    @Test("It is told of an enrolment and of what waits, and what it takes its time for keeps nobody waiting")
    func served() async throws {
        let clock = ManualClock()
        let receiver = try await WebhookReceiver(now: clock.now)
        let result: Result<Void, any Error>
        do {
            try await ServerFixture.run(clock: clock, editing: { Self.file(receiver, $0) }) { fixture in
                let issuer = SigningOverHTTP(fixture)
                let session = try await fixture.session("ana")
                let (_, container) = try await issuer.enrolled(session: session, pushID: "push-1")
                await receiver.waitForRequests(1)
                receiver.service.hold()
                let token = try await issuer.shop()
                let made = try await issuer.create(token)
                #expect(made.status == 201)
                await receiver.service.release()
                await receiver.waitForRequests(2)
                let requests = receiver.requests
                #expect(requests.count == 2)
                for request in requests { #expect(WebhookReceiver.isSigned(request)) }
                let told = try requests.map { try JSONValue.parse($0.body) }
                #expect(told.map { $0["type"] } == ["device.enrolled", "transaction.waiting"])
                #expect(told.first?["data"]?["did"] == .string(container.did.text))
                #expect(told.last?["data"]?["txn"] == made.json["txn"])
                #expect(told.last?["data"]?["pushIds"] == ["push-1"])
                #expect(told.allSatisfy { $0["data"]?["iss"] == .string(issuer.name) })
                // What is asked stays here.
                for text in ["200.00", "Bob"] { #expect(requests.last.map { $0.contains(text) } == false) }
                let log = String(decoding: fixture.logged, as: UTF8.self)
                for text in [WebhookReceiver.secret, "of-the-service"] { #expect(!log.contains(text)) }
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await receiver.stop()
        try result.get()
    }

    @Test("A stop still sends what the last requests have said")
    func stop() async throws {
        let clock = ManualClock()
        let receiver = try await WebhookReceiver(now: clock.now)
        let fixture: ServerFixture
        do {
            fixture = try await ServerFixture(
                clock: clock, editing: { Self.file(receiver, $0) },
                // What a stop still sends may take a busy machine longer than the usual seconds.
                configuring: { $0.recordingSeconds = Patience.seconds })
        } catch {
            await receiver.stop()
            throw error
        }
        let issuer = SigningOverHTTP(fixture)
        let session = try? await fixture.session("ana")
        if let session { _ = try? await issuer.enrolled(session: session) }
        await fixture.stop()
        #expect(receiver.requests.count == 1)
        await receiver.stop()
    }

    @Test("A program with a channel of its own does not start with the section, of which nothing would be done")
    func twoChannels() async throws {
        let receiver = try await WebhookReceiver(now: Date())
        let text = Self.file(receiver, FixtureConfiguration.yaml(upstream: 9080, refusing: 9081))
        let configuration = try ServerConfiguration.parse(text, file: receiver.directory + "/assent.yaml")
        let error = await #expect(throws: ConfigurationError.self) {
            _ = try await IdentityServer(
                configuration: configuration, notifier: Silent(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }
        #expect(error?.message.hasPrefix("notify: ") == true)
        await receiver.stop()
    }

    private struct Silent: Notifier {
        func notify(_ news: DeviceNews) async {}
        func notify(_ news: TransactionNews) async {}
    }
}

extension TestUpstream.Request {
    /// Whether a text is in the content.
    fileprivate func contains(_ text: String) -> Bool { String(decoding: body, as: UTF8.self).contains(text) }
}
