import AssentCore
import HTTPTypes

/// Sends one request at a time to each program: glewlwyd mixes up codes and tokens of requests that come at once (it
/// asks its database for "the last row", on a connection that all requests share).
struct OneAtATime: HTTPTransport {
    let base: any HTTPTransport

    private static let gates = Locked<[String: Gate]>([:])

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        let gate = Self.gates.withLock { gates in
            let authority = call.request.authority ?? ""
            let gate = gates[authority] ?? Gate()
            gates[authority] = gate
            return gate
        }
        await gate.enter()
        do {
            let reply = try await base.send(call)
            await gate.leave()
            return reply
        } catch {
            await gate.leave()
            throw error
        }
    }
}

/// Lets one in after the other, in the order in which they came.
private actor Gate {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        guard isTaken else {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        if waiting.isEmpty {
            isTaken = false
        } else {
            waiting.removeFirst().resume()
        }
    }
}
