import AssentCore
import AssentPayload
import HTTPTypes
import Testing

@testable import Assent
@testable import AssentDemo

/// Connections that end within a TLS record, at a stretch of network that ends no TLS.
@Suite("Payload encryption: connections that end within a TLS record")
struct SealedRecordCutTests {
    /// After how many bytes: within the record's head of 5 bytes, within its content, and near the end of the smallest
    /// message, which has 318 bytes with its head and its tag, and the fields of HTTP before them.
    private static let places = [0, 1, 4, 5, 6, 21, 22, 64, 150, 300]

    @Test(
        "36: A message that is cut anywhere runs not at all, one whose reply is cut once; what is safe is answered",
        arguments: RecordCutter.Direction.allCases)
    func cut(direction: RecordCutter.Direction) async throws {
        try await RecordCutter.run { cutter in
            try await LedgerService.run { ledger in
                try await World.run(
                    logger: CollectingLog().logger, editing: ledger.routed, configuring: { cutter.place(&$0) }
                ) { story in
                    cutter.join(story)
                    let keys = try await World.payloadKeys(of: story.world)
                    let wire = SealedWire()
                    let client = wire.sealing(
                        story.transport, to: [try Origin(cutter.url)], with: keys, clock: story.clock)
                    // The control: it passes on what is not to be cut.
                    #expect(await call(client, .post, cutter, ledger) == .answered)
                    for place in Self.places {
                        for method in [HTTPRequest.Method.post, .get] {
                            // So that there is a connection, whose own handshake is not what is cut.
                            #expect(await call(client, .get, cutter, ledger) == .answered)
                            let (before, cuts) = (ledger.entries.count, cutter.cuts)
                            cutter.cut(direction, after: place)
                            let outcome = await call(client, method, cutter, ledger)
                            #expect(cutter.cuts == cuts + 1)
                            #expect(outcome == (method == .get ? .answered : .unknown), "\(method), \(place)")
                            let executions = (direction == .reply ? 1 : 0) + (method == .get ? 1 : 0)
                            let runs = RelayScene.runs(method, in: ledger, since: before)
                            #expect(runs == executions, "\(method), \(place)")
                        }
                    }
                    #expect(wire.isSealed)
                }
            }
        }
    }

    /// After how many bytes of a reply of 200,000 its connection ends, as when its node is killed: within the first
    /// chunk, which has 65,598 with its head and its tag, and behind it.
    private static let lateCuts = [(place: 20_000, isHandedOver: false), (place: 100_000, isHandedOver: true)]

    @Test("36: A reply that is cut within its first chunk is none, so what is safe is asked again; a later cut is told")
    func cutBehindFirstChunk() async throws {
        try await RecordCutter.run { cutter in
            try await LedgerService.run { ledger in
                try await World.run(
                    logger: CollectingLog().logger, editing: ledger.routed, configuring: { cutter.place(&$0) }
                ) { story in
                    cutter.join(story)
                    ledger.lengthen(by: 200_000)
                    let keys = try await World.payloadKeys(of: story.world)
                    let wire = SealedWire()
                    let client = wire.sealing(
                        story.transport, to: [try Origin(cutter.url)], with: keys, clock: story.clock)
                    for (place, isHandedOver) in Self.lateCuts {
                        for method in [HTTPRequest.Method.post, .get] {
                            // The control, and a connection.
                            #expect(await call(client, .get, cutter, ledger) == .answered)
                            let (before, cuts) = (ledger.entries.count, cutter.cuts)
                            wire.clear()
                            cutter.cut(.reply, after: place)
                            let outcome = await call(client, method, cutter, ledger)
                            #expect(cutter.cuts == cuts + 1)
                            let isRepeated = method == .get && !isHandedOver
                            #expect(outcome == (isRepeated ? .answered : .unknown), "\(method), \(place)")
                            let sendings = isRepeated ? 2 : 1
                            #expect(RelayScene.runs(method, in: ledger, since: before) == sendings)
                            #expect(wire.messages.count == sendings && wire.isSealed, "\(method), \(place)")
                        }
                    }
                    #expect(await call(client, .get, cutter, ledger) == .answered)
                }
            }
        }
    }

    private func call(
        _ client: any HTTPTransport, _ method: HTTPRequest.Method, _ cutter: RecordCutter, _ ledger: LedgerService
    ) async -> RelayScene.Outcome {
        await RelayScene.call(client, method, url: cutter.url, ledger)
    }
}
