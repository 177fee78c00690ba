import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking

/// Foundation's side of one loading: says when it is told of the end, on the thread on which it is told.
final class LoadingWitness: NSObject, URLProtocolClient, Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) {
        self.end = end
        super.init()
    }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) { end() }
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) { end() }

    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {}
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {}
    func urlProtocol(
        _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
    ) {}
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {}
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {}
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}
}
#endif
