import NIOCore
import NIOEmbedded
import Testing

@testable import AssentServer

@Suite("A client that does not take what it is sent")
struct WriteTimeoutTests {
    private func channel() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandler(WriteTimeout(.seconds(35)))
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/anywhere")).wait()
        return channel
    }

    private func set(_ channel: EmbeddedChannel, writable: Bool) {
        channel.isWritable = writable
        channel.pipeline.fireChannelWritabilityChanged()
    }

    @Test("is cut off when nothing has gone out for the limit")
    func stalled() throws {
        let channel = try channel()
        set(channel, writable: false)
        channel.embeddedEventLoop.advanceTime(by: .seconds(34))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
        _ = try? channel.finish()
    }

    @Test("is not, when it takes something now and then, or has nothing to take")
    func slow() throws {
        let channel = try channel()
        for _ in 0..<5 {
            set(channel, writable: false)
            channel.embeddedEventLoop.advanceTime(by: .seconds(34))
            set(channel, writable: true)
        }
        channel.embeddedEventLoop.advanceTime(by: .seconds(3600))
        #expect(channel.isActive)
        _ = try channel.finish()
    }
}
