public import AssentAuthorization
import AssentCore

/// Is told once what became of a call: the response, the error, or both from status 400 on.
public typealias ResourceCompletion = @Sendable (ResourceResponse?, ResourceError?) -> Void

extension ResourceCalls {
    /// Sends a request and tells `completion`. What cannot be sent is told before this returns `nil`.
    func start(
        _ request: ResourceRequest, completion: @escaping ResourceCompletion,
        sending: @escaping @Sendable (HTTPCall) async throws(ResourceError) -> ResourceResponse
    ) -> Task<Void, Never>? {
        let call: HTTPCall
        do throws(ResourceError) {
            call = try checked(request)
        } catch {
            completion(nil, error)
            return nil
        }
        return Task {
            do throws(ResourceError) {
                let response = try await sending(call)
                completion(response, response.error)
            } catch {
                completion(nil, error)
            }
        }
    }
}
