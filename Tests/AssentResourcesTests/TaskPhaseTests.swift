import Assent
import Foundation
import HTTPTypes
import Testing

@testable import AssentResources

@Suite("Tasks that are stopped in each phase of a call")
struct TaskPhaseTests {
    private static let reply = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"

    private func cancel(_ task: NetworkTask, _ told: Told) async {
        task.cancel()
        await task.ended()
        #expect(told.count == 1 && told.error?.number == 9006 && task.error == told.error)
    }

    @Test("Row 42: in the queue, where also a suspended call waits for nothing", arguments: [false, true])
    func queue(isSuspended: Bool) async throws {
        try await TaskWorld.run { _, _, _ in
        } _: { world in
            let first = try (0..<8).map { _ in try world.start(world.request(), Told()) }
            await world.server.waitUntil { $0.heads.count == 8 }
            let told = Told()
            let ninth = try world.start(world.request(), told)
            if isSuspended {
                ninth.suspend()
                for peer in world.server.seen.peers { peer.send(Self.reply + "0123456789") }
                for task in first { await task.ended() }
                #expect(world.server.seen.heads.count == 8 && told.count == 0)
                ninth.resume()
                await world.server.waitUntil { $0.heads.count == 9 }
            }
            await cancel(ninth, told)
            #expect(world.server.seen.heads.count == (isSuspended ? 9 : 8))
            for task in first { task.cancel() }
        }
    }

    @Test("Row 42: in the handshake, which a suspended call gives up and begins anew", arguments: [false, true])
    func handshake(isSuspended: Bool) async throws {
        try await TaskWorld.run(scheme: "https") { _, _, _ in
        } _: { world in
            let told = Told()
            let task = try world.start(world.request(), told)
            await world.server.waitUntil { $0.connections == 1 }
            if isSuspended {
                task.suspend()
                for _ in 0..<100 { await Task.yield() }
                #expect(told.count == 0)
                task.resume()
                await world.server.waitUntil { $0.connections == 2 }
            }
            await cancel(task, told)
        }
    }

    @Test("Row 42: while the head of the reply is awaited, and in the middle of a download", arguments: [false, true])
    func replies(hasBegun: Bool) async throws {
        try await TaskWorld.run { _, _, peer in
            if hasBegun { peer.send(Self.reply + "hello") }
        } _: { world in
            let told = Told()
            let task = try world.download(told)
            await world.server.waitUntil { $0.heads.count == 1 }
            if hasBegun { await task.received(5) }
            task.suspend()
            task.resume()
            await cancel(task, told)
            while !world.files.isEmpty { await Task.yield() }
        }
    }

    @Test("Row 42: in the middle of an upload", arguments: [false, true])
    func upload(isCancelled: Bool) async throws {
        try await TaskWorld.run { _, _, peer in
            if !isCancelled { peer.send(Self.reply + "0123456789") }
        } _: { world in
            let size = 4 << 20
            let source = world.directory.appending(path: "source").path
            try Data(repeating: 7, count: size).write(to: URL(fileURLWithPath: source))
            let told = Told()
            let request = try world.request(.post).upload(from: source)
            if isCancelled {
                let task = try world.start(request, told)
                await world.server.waitUntil { $0.contentBytes > 0 }
                task.suspend()
                await cancel(task, told)
            } else {
                // The reply comes before the content; the call ends with it, and its connection is not used again.
                let task = try world.start(request, told)
                await task.ended()
                #expect(told.response?.data.count == 10)
            }
        }
    }

    @Test("An upload that is suspended and goes on arrives whole, and its progress adds up")
    func suspendedUpload() async throws {
        let size = 4 << 20
        try await TaskWorld.run { _, _, _ in
        } _: { world in
            let source = world.directory.appending(path: "source").path
            try Data(repeating: 7, count: size).write(to: URL(fileURLWithPath: source))
            let told = Told()
            let task = try world.start(try world.request(.put).upload(from: source), told)
            await world.server.waitUntil { $0.contentBytes > 0 }
            task.suspend()
            #expect(task.state == .suspended)
            task.resume()
            await world.server.waitUntil { $0.contentBytes == size }
            world.server.seen.peers[0].send(Self.reply + "0123456789")
            await task.ended()
            #expect(told.error == nil && told.response?.data.count == 10)
            var last: NetworkProgress?
            for await now in task.progress { last = now }
            #expect(last?.sentBytes == size && last?.bytesToSend == size && last?.receivedBytes == 10)
        }
    }

    @Test("A download is refused for what is no GET, and for a place that is none, before anything is sent")
    func places() async throws {
        try await TaskWorld.run { _, _, peer in
            peer.send(Self.reply + "0123456789")
        } _: { world in
            let post = await #expect(throws: ResourceError.self) {
                try await world.client.sendUnauthenticatedRequest(world.request(.post).download(to: world.target))
            }
            #expect(post?.number == 10015)
            let nowhere = await #expect(throws: ResourceError.self) {
                try await world.client.sendUnauthenticatedRequest(
                    world.request().download(to: world.directory.appending(path: "no/where").path))
            }
            #expect(nowhere?.number == -3000)
            #expect(world.server.seen.heads.isEmpty)
            let long = await #expect(throws: ResourceError.self) {
                try await world.client.sendUnauthenticatedRequest(
                    world.request().download(to: world.target, maximumBytes: 9))
            }
            #expect(long?.number == -1103)
            #expect(world.files.isEmpty)
            let missing = #expect(throws: ResourceError.self) { try world.request(.put).upload(from: world.target) }
            #expect(missing?.number == 10015)
        }
    }
}
