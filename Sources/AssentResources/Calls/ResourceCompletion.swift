public import AssentAuthorization
import AssentCore

/// Is told once what became of a call: the response, the error, or both from status 400 on.
public typealias ResourceCompletion = @Sendable (ResourceResponse?, ResourceError?) -> Void

extension ResourceCalls {
    /// Sends a request and tells `completion`. What cannot be sent is told before this returns `nil`.
    func start(_ request: ResourceRequest, completion: @escaping ResourceCompletion) -> NetworkTask? {
        start(request, nil, completion) { calls throws(ResourceError) in try calls.checked(request) }
    }

    /// The same, with the reply's content in a file.
    func start(_ download: ResourceDownload, completion: @escaping ResourceCompletion) -> NetworkTask? {
        start(download.request, download, completion) { calls throws(ResourceError) in try calls.checked(download) }
    }

    private func start(
        _ request: ResourceRequest, _ download: ResourceDownload?, _ completion: @escaping ResourceCompletion,
        check: (ResourceCalls) throws(ResourceError) -> HTTPCall
    ) -> NetworkTask? {
        var call: HTTPCall
        do throws(ResourceError) {
            call = try check(self)
        } catch {
            completion(nil, error)
            return nil
        }
        let task = NetworkTask(identifier: random.uuid(), request: request, completion: completion)
        call.control = task.control
        let transfer = Transfer(
            calls: self, call: call, download: download, control: task.control, report: { task.report($0) })
        task.start { await transfer.run() }
        return task
    }
}
