import AssentCore
import AssentServer
import SigningTesting
import Testing

/// What the channel of an embedder hears.
private final class Push: Notifier {
    let devices = Locked<[DeviceNews]>([])
    let transactions = Locked<[TransactionNews]>([])

    func notify(_ news: DeviceNews) async { devices.withLock { $0.append(news) } }
    func notify(_ news: TransactionNews) async { transactions.withLock { $0.append(news) } }
}

@Suite("A notifier of the program that runs the server")
struct NotifierTests {
    @Test("It hears of an enrolment and of what waits, with the push ids that devices gave when they enrolled")
    func news() async throws {
        let push = Push()
        let fixture = try await ServerFixture(notifier: push)
        do {
            let issuer = SigningOverHTTP(fixture)
            let session = try await fixture.session("ana")
            let (_, container) = try await issuer.enrolled(session: session, pushID: "push-1")
            let silent = try await issuer.enrolled(session: session).container
            #expect(push.devices.withLock { $0.map(\.event) } == [.enrolled, .enrolled])
            #expect(push.devices.withLock { $0.map(\.did) } == [container.did.text, silent.did.text])
            #expect(push.devices.withLock { $0.map(\.pushID) } == ["push-1", nil])

            let token = try await issuer.shop()
            let made = try await issuer.create(token)
            #expect(made.status == 201)
            let heard = push.transactions.withLock { $0 }
            #expect(heard.map(\.txn) == [made.json["txn"]?.string] && heard.map(\.pushIDs) == [["push-1"]])

            // For one device that has none there is nobody to be woken.
            _ = try await issuer.create(token) { $0["did"] = .string(silent.did.text) }
            #expect(push.transactions.withLock { $0.last?.pushIDs } == [])
            #expect(push.transactions.withLock { $0.last?.did } == silent.did.text)
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }
}
