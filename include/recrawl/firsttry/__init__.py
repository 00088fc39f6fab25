"""`make round`: one crawl round through Airflow's DAG, watched, with something to read at its end.

`trial` decides what is crawled (the sample web or the user's seeds), `watch` runs the DAG in a
process of its own and tells how it goes, `report` shows what came of it.
"""
