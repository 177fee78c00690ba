/// A layer around the transport: it may change a call, look at the reply, or answer by itself.
public protocol HTTPMiddleware: Sendable {
    /// Handles `call`; `next` runs the layers below and, at the end, the transport.
    func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply
}

/// A transport with layers around it, outermost first. It is itself a transport.
public struct HTTPPipeline: HTTPTransport {
    private let transport: any HTTPTransport
    private let layers: [any HTTPMiddleware]

    /// `layers` around `transport`, the first one outermost.
    public init(_ transport: any HTTPTransport, layers: [any HTTPMiddleware]) {
        self.transport = transport
        self.layers = layers
    }

    /// Sends `call` through all layers.
    @concurrent public func send(_ call: HTTPCall) async throws -> HTTPReply {
        try await Next(transport: transport, layers: layers[...]).send(call)
    }

    /// The rest of the way: a value, so that a layer may call it again.
    public struct Next: Sendable {
        fileprivate let transport: any HTTPTransport
        fileprivate let layers: ArraySlice<any HTTPMiddleware>

        /// Sends `call` through the remaining layers.
        public func send(_ call: HTTPCall) async throws -> HTTPReply {
            guard let layer = layers.first else { return try await transport.send(call) }
            return try await layer.intercept(call, next: Next(transport: transport, layers: layers.dropFirst()))
        }
    }
}
