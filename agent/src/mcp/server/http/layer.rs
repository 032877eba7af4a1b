//! The server as a layer around an application.

use super::super::handle::ServerHandle;
use super::message::ResponseBody;
use super::{HttpService, RequestError};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that answers requests to one path and to the path of the server's metadata for authorization. It forwards all other requests to
/// the application.
#[derive(Clone, Debug)]
pub(crate) struct HttpLayer {
    service: HttpService,
    path: Arc<str>,
}

impl HttpLayer {
    pub(crate) fn new(service: HttpService, path: &str) -> Self {
        Self { service, path: path.into() }
    }

    pub(super) fn handle(&self) -> ServerHandle {
        self.service.shared.handle.clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.service.shared.limits.connections
    }

    pub(super) fn send(&self) -> std::time::Duration {
        self.service.shared.limits.send
    }

    pub(super) fn receive(&self) -> std::time::Duration {
        self.service.shared.limits.receive
    }
}

impl<S> Layer<S> for HttpLayer {
    type Service = McpMount<S>;

    fn layer(&self, inner: S) -> McpMount<S> {
        McpMount { own: self.clone(), inner }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct McpMount<S> {
    own: HttpLayer,
    inner: S,
}

impl<S> McpMount<S> {
    fn is_for_server<B>(&self, request: &Request<B>) -> bool {
        let path = request.uri().path();
        let metadata = self.own.service.shared.metadata.as_ref();
        path == &*self.own.path || metadata.is_some_and(|metadata| metadata.is_at(path))
    }
}

impl<S, B, R> Service<Request<B>> for McpMount<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<RequestError>,
{
    type Response = Response<ResponseBody>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if self.is_for_server(&request) {
            let response = self.own.service.clone().respond(request);
            return Box::pin(async move { Ok(response.await) });
        }
        let response = self.inner.call(request);
        Box::pin(async move { Ok(response.await?.map(ResponseBody::wrap)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::McpServer;
    use crate::tools;
    use http_body_util::{BodyExt, Full};
    use std::convert::Infallible;

    struct BrokenBody;

    impl Body for BrokenBody {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _task: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
            panic!("the password is hunter2")
        }
    }

    #[tokio::test]
    async fn a_panic_of_a_body_has_a_response() {
        let mut service = McpServer::new(tools![]).into_service().unwrap();
        for _ in 0..2 {
            let request = Request::post("http://localhost/mcp").header("host", "localhost").body(BrokenBody);
            let response = service.call(request.unwrap()).await.unwrap();
            assert_eq!(response.status(), 500);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body = String::from_utf8_lossy(&body);
            assert!(body.contains("-32603") && !body.contains("hunter2"), "{body}");
        }
    }

    #[derive(Clone)]
    struct Echo;

    impl Service<Request<Full<Bytes>>> for Echo {
        type Response = Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _task: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
            std::future::ready(Ok(Response::new(request.into_body())))
        }
    }

    #[tokio::test]
    async fn other_requests_reach_the_application_unchanged() {
        let server = McpServer::new(tools![]).protected_resource("http://localhost/tools", [], []);
        let layer = server.into_layer("/tools").unwrap();
        let mut app = layer.layer(Echo);
        let mut ask = async |method: &str, uri: &str, host: &str| {
            let request = Request::builder().method(method).uri(uri).header("host", host);
            let response = app.call(request.body(Full::from("hello")).unwrap()).await.unwrap();
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8_lossy(&body).into_owned())
        };
        for uri in ["/", "/tools/more", "/toolsmith", "/mcp", "/.well-known/oauth-protected-resource"] {
            assert_eq!(ask("POST", uri, "evil.example").await, (200, "hello".to_owned()), "{uri}");
        }
        assert_eq!(ask("POST", "/tools", "evil.example").await.0, 403);
        assert_eq!(ask("GET", "/tools", "localhost").await.0, 405);
        assert_eq!(ask("POST", "/tools?x=1", "localhost").await.0, 400);
        let document = ask("GET", "/.well-known/oauth-protected-resource/tools", "localhost").await;
        assert!(document.0 == 200 && document.1.contains("http://localhost/tools"), "{document:?}");
        for (method, status) in [("HEAD", 200), ("POST", 405)] {
            let reply = ask(method, "/.well-known/oauth-protected-resource/tools", "localhost").await;
            assert_eq!(reply.0, status, "{method}: {reply:?}");
        }
    }
}
