import Assent
import AssentTransportNIO
import Testing

@testable import AssentResources

@Suite("The tables about tasks in docs/resources.md")
struct TaskPageTests {
    @Test("Row 20: each state changes as its row says, and in no other way")
    func states() throws {
        let rows = try table("states")
        #expect(rows.map { $0[0] } == NetworkTask.State.allCases.map(\.rawValue))
        for row in rows {
            let state = try #require(NetworkTask.State(rawValue: row[0]))
            for (event, cell) in zip(NetworkTask.State.Event.allCases, row.dropFirst()) {
                #expect(state.after(event)?.rawValue ?? "–" == cell, "\(state), \(event)")
            }
        }
    }

    @Test("Row 21: in each situation exactly one row says what a resumed call does, and it does that")
    func resume() throws {
        let rows = try table("resume")
        let actions: [String: Resumption.Action] = [
            "goes on": .goOn, "starts over": .startOver, "asks for the rest": .askForRest, "fails": .fail,
        ]
        for connection in Resumption.Connection.allCases {
            for number in 0..<8 {
                let (isRepeatable, hasStored, isContinuable) = (number & 1 > 0, number & 2 > 0, number & 4 > 0)
                let cells = [
                    connection.rawValue, isRepeatable ? "yes" : "no", hasStored ? "yes" : "no",
                    isContinuable ? "yes" : "no",
                ]
                let matching = rows.filter { row in zip(row, cells).allSatisfy { $0 == "any" || $0 == $1 } }
                #expect(matching.count == 1, "\(cells)")
                let resumption = Resumption(
                    connection: connection, isRepeatable: isRepeatable, hasStored: hasStored,
                    isContinuable: isContinuable)
                #expect(matching.first.flatMap { actions[$0[4]] } == resumption.action, "\(cells)")
            }
        }
    }

    @Test("The limits are those of the code")
    func limits() throws {
        let limits = ResourceCalls.limits
        let transport = NIOTransportConfiguration(pins: [:])
        let download = ResourceRequest.get("x").download(to: "y").maximumBytes
        let expected = [
            "\(limits.connect.components.seconds) s", "\(limits.read.components.seconds) s", "none",
            "\(limits.replyBytes >> 20) MiB", "\(download >> 30) GiB, or what the app says",
            "\(transport.maximumConnectionsPerOrigin)", "\(transport.maximumSuspendedPerOrigin)", "none",
        ]
        #expect(try table("limits").map { $0[1] } == expected)
    }

    @Test("A part of a content is read strictly")
    func parts() {
        #expect(ContentPart("bytes 5-9/10")?.first == 5)
        let wrong: [String?] = [
            nil, "", "bytes 5-9", "bytes 5-9/*", "bytes */10", "bytes 9-5/10", "bytes 5-10/10", "bytes -5-9/10",
            "bytes +5-9/10", "bytes 5-9/10/11", "bytes  5-9/10", "Bytes 5-9/10", "bytes 5-9/99999999999999999999",
        ]
        for text in wrong { #expect(ContentPart(text) == nil, "\(text ?? "nil")") }
    }
}
